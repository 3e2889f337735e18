package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A report is what came of all rows.
type report struct {
	Machine *machine
	Command string
	Short   bool
	Groups  []results
}

// results are those of a group.
type results struct {
	Title string
	Note  string
	Peers []string // columns
	Rows  []*result
}

// measure measures the chosen rows one after the other. The others stand in the report too, with what came of them before where that was kept.
func (rep *report) measure(ctx context.Context, e *env, groups []group, chosen func(string) bool, before kept) {
	left := 0
	for _, g := range groups {
		for _, r := range g.rows {
			if chosen(r.name) {
				left++
			}
		}
	}
	for _, g := range groups {
		rs := results{Title: g.title, Note: g.note, Peers: g.peers}
		for _, r := range g.rows {
			res := r.begin(e.short)
			if chosen(r.name) {
				e.say("%3d left  %-24s ", left, r.name)
				r.measure(ctx, e, res)
				left--
				res.At = rep.Machine.at()
				e.say("%s (%s, %.0f s)\n", res.measured(), res.State, res.Seconds)
			} else {
				r.keep(res, before[r.name])
			}
			rs.Rows = append(rs.Rows, res)
		}
		rep.Groups = append(rep.Groups, rs)
	}
}

// begin is the result of a row that was not looked at yet.
func (r *row) begin(short bool) *result {
	return &result{Name: r.name, What: r.what, Target: r.target.text(r.unit), Unit: r.unit, How: r.from.how(short)}
}

// measure fills in what comes of the row, within its time.
func (r *row) measure(ctx context.Context, e *env, res *result) {
	limit := r.timeout
	if limit == 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	begun := time.Now()
	defer func() { res.Seconds = time.Since(begun).Seconds() }()
	for _, missing := range r.needs {
		if why := missing(ctx, e); why != "" {
			res.State, res.Why = stateNotMeasured, "needs "+why
			return
		}
	}
	got, err := r.from.measure(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		res.State, res.Why = stateFailed, err.Error()
		return
	}
	res.Value, res.Beside, res.Peers, res.Curve, res.State = &got.value, got.beside, got.peers, got.curve, r.state(got.value)
}

// state is that of a row with this figure.
func (r *row) state(value float64) string {
	switch {
	case r.target.op == "":
		return stateTold
	case r.target.met(value):
		return stateMet
	}
	return stateMissed
}

// keep takes what an earlier run found, held against today's target; nil for none.
func (r *row) keep(res *result, before *outcome) {
	res.State, res.Why = stateNotMeasured, "not chosen"
	if before == nil {
		return
	}
	res.outcome = *before
	if res.Value != nil {
		res.State = r.state(*res.Value)
	}
}

// count returns how many rows are in a state.
func (rep *report) count(state string) (n int) {
	for _, g := range rep.Groups {
		for _, r := range g.Rows {
			if r.State == state {
				n++
			}
		}
	}
	return n
}

// summary says how many rows came out how.
func (rep *report) summary() string {
	var parts []string
	for _, state := range []string{stateMet, stateMissed, stateTold, stateNotMeasured, stateFailed} {
		parts = append(parts, fmt.Sprintf("%d %s", rep.count(state), state))
	}
	return strings.Join(parts, ", ")
}
