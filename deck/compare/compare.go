// Package compare holds recordings beside each other: up to Most runs of one agent, from where they first differ on.
//
// The first recording is what the others are held against. Its conversations are paired with those of another one by their lane, what is
// left by order; two turns are the same where the same was asked of the same model and the same came back, without what is volatile.
// The first pair that is not is where the other recording leaves the first. From there on each is a row: turns, tools, the files that
// the run left otherwise, its end, how a command ends over its end state, tokens, cost, time (package account).
//
// Recordings that are forks of one parent at one record with the same change are a group of samples: mean, spread and interval of each
// number, and whether it differs from that of the first group by more than chance (groups.go).
//
// Not goals: whether one recording is a faithful replay of another (package fidelity), running an agent.
package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/endcheck"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// Most is how many recordings are compared at once.
const Most = 100

// Options say how Run compares. Nil and zero work.
type Options struct {
	Prices  *llm.Prices   // nil is what is built in
	Verify  string        // a command for sh that is run in each end state; "" is none
	Timeout time.Duration // of one such command; 0 is DefaultTimeout
	Jobs    int           // how many recordings at once; 0 is as many as there are processors
	Step    func(done, of int64)
}

// DefaultTimeout is how long a command may run in one end state.
const DefaultTimeout = endcheck.DefaultTimeout

// A Comparison is some recordings beside each other.
type Comparison struct {
	Rows   []*Row   `json:"recordings"`
	Same   int      `json:"same_turns"` // turns that all have in common with the first, before the first difference
	Differ bool     `json:"differ"`     // false: they do not, in turns, files and ends
	Groups []*Group `json:"groups"`     // none where nothing was run several times
	Notes  []string `json:"notes"`
}

// A Row is one recording.
type Row struct {
	ID      string          `json:"id"`
	Path    string          `json:"path"`
	Parent  *string         `json:"parent"`
	ForkSeq *uint64         `json:"fork_seq"`
	Leaves  *Difference     `json:"leaves"`     // where it leaves the first; null where it does not, and of the first
	Same    int             `json:"same_turns"` // before that
	Total   Totals          `json:"total"`
	After   Spent           `json:"after"` // what it spent from the first difference on
	Tools   []Tool          `json:"tools"`
	Files   []File          `json:"files"` // that it left otherwise than the first
	Exit    *recording.Exit `json:"exit"`
	Check   *Check          `json:"check"` // null where there was none

	account *account.Account
	rec     *recording.Recording
	found   cas.Digest // of the work tree that the run found; zero where none was kept
}

// Name is what people call the recording: its directory, or its id where that says no more.
func (r *Row) Name() string {
	switch base := filepath.Base(r.Path); base {
	case r.ID + ".rec", library.UnpackedName:
		return r.ID
	default:
		return base
	}
}

// Totals are what a recording comes to.
type Totals = recording.Totals

// Spent is what some turns came to.
type Spent struct {
	Turns        int      `json:"turns"`
	Tools        int      `json:"tools"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`   // null where that of one turn is not known
	LatencyMS    int64    `json:"latency_ms"` // of the answers, added up

	uncounted int // answers that do not say what they took
}

// Run compares recordings, two or more. The error is that of the first that could not be read, or ctx's.
func Run(ctx context.Context, recs []*recording.Recording, o *Options) (*Comparison, error) {
	if o == nil {
		o = new(Options)
	}
	if len(recs) < 2 || len(recs) > Most {
		return nil, fmt.Errorf("expected 2 to %d recordings, got %d", Most, len(recs))
	}
	c := &Comparison{Rows: make([]*Row, len(recs)), Notes: []string{}, Groups: []*Group{}}
	if err := o.each(ctx, recs, func(i int) (err error) {
		c.Rows[i], err = o.row(ctx, recs[i])
		return err
	}); err != nil {
		return nil, err
	}
	c.differences()
	if err := c.files(); err != nil {
		return nil, err
	}
	c.group()
	for i, r := range c.Rows {
		if f := r.rec.Manifest.Fork; f != nil && f.Failed != "" {
			c.Notes = append(c.Notes, fmt.Sprintf("%d is a fork that did not come to its end: %s", i+1, f.Failed))
		}
		if !r.rec.Finished() {
			c.Notes = append(c.Notes, fmt.Sprintf("%d is unfinished: what its recorder did not come to is not there", i+1))
		}
	}
	for _, r := range c.Rows[1:] {
		c.Differ = c.Differ || r.Leaves != nil || len(r.Files) > 0 || !sameEnd(r.Exit, c.Rows[0].Exit)
	}
	return c, nil
}

func sameEnd(a, b *recording.Exit) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// each does something for every recording, several at once, and stops at the first error.
func (o *Options) each(ctx context.Context, recs []*recording.Recording, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	done := int64(0) // guarded by mu
	recording.Each(ctx, len(recs), o.Jobs, func(i int) {
		if err := do(i); err != nil {
			cancel(fmt.Errorf("%s: %w", recs[i].Dir, err))
		}
		mu.Lock()
		defer mu.Unlock()
		if done++; o.Step != nil {
			o.Step(done, int64(len(recs)))
		}
	})
	return context.Cause(ctx)
}

// row reads a recording and tries the command in its end state.
func (o *Options) row(ctx context.Context, rec *recording.Recording) (*Row, error) {
	a, err := account.Of(rec, o.Prices)
	if err != nil {
		return nil, err
	}
	m := rec.Manifest
	r := &Row{
		ID: m.ID, Path: rec.Dir, Parent: m.Parent, ForkSeq: m.ForkSeq, Total: a.Total, Exit: a.Exit, account: a, rec: rec,
		Tools: []Tool{}, Files: []File{},
	}
	if o.Verify != "" {
		r.Check, err = o.check(ctx, rec)
	} else if m.Fork != nil && m.Fork.Verify != nil {
		r.Check = &Check{Check: *m.Fork.Verify, Recorded: true}
	}
	return r, err
}

// Failed are the recordings in whose end state the command of the options did not end with 0, or could not be run.
func (c *Comparison) Failed() (failed []*Row) {
	for _, r := range c.Rows {
		if r.Check != nil && !r.Check.Recorded && !r.Check.Passed() {
			failed = append(failed, r)
		}
	}
	return failed
}

// MarshalJSON gives the rows their places, from 1, by which differences and groups name them.
func (c *Comparison) MarshalJSON() ([]byte, error) {
	type plain Comparison
	type placed struct {
		N int `json:"n"`
		*Row
	}
	rows := make([]placed, len(c.Rows))
	for i, r := range c.Rows {
		rows[i] = placed{i + 1, r}
	}
	return json.Marshal(struct {
		Rows []placed `json:"recordings"`
		*plain
	}{rows, (*plain)(c)})
}

// A Check is how a command ended over the work tree as a run left it.
type Check struct {
	recording.Check
	Recorded bool `json:"recorded"` // it was run when the fork was made, and is not run again
}

// check runs the command over the end state of a recording. The error is ctx's, or that of the temporary directory; what keeps one
// recording from being checked is in its Check.
func (o *Options) check(ctx context.Context, rec *recording.Recording) (*Check, error) {
	temp, err := recording.NewTemp(os.TempDir(), library.CheckPrefix)
	if err != nil {
		return nil, err
	}
	defer temp.Remove()
	dir := filepath.Join(temp.Dir, "tree")
	leftOut, err := derive.RestoreEnd(rec, dir)
	if err != nil {
		return &Check{Check: recording.Check{Command: o.Verify, Exit: -1, Why: err.Error()}}, nil
	}
	command := &endcheck.Command{Line: o.Verify, Timeout: o.Timeout, LeftOut: leftOut}
	made, err := command.Run(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Check{Check: *made}, nil
}

// Write writes a comparison for people.
func (c *Comparison) Write(w io.Writer, f Form) error {
	p := &page{Form: f, w: w}
	p.print("%s\n\n", c.summary())
	p.table(c)
	p.leaving(c)
	p.tools(c)
	p.files(c)
	p.checks(c)
	p.groups(c)
	totals := make([]*recording.Totals, len(c.Rows))
	for i, r := range c.Rows {
		totals[i] = &r.Total
	}
	if notes := append(slices.Clone(c.Notes), unknown(totals)...); len(notes) > 0 {
		p.heading("notes")
		for _, n := range notes {
			p.item(n)
		}
	}
	return p.err
}

func (c *Comparison) summary() string {
	what := fmt.Sprintf("%d recordings, held against 1: ", len(c.Rows))
	turns := 0
	for _, r := range c.Rows {
		turns += r.Total.Turns
	}
	switch {
	case turns == 0:
		return what + "none of them asked a model"
	case !slices.ContainsFunc(c.Rows, func(r *Row) bool { return r.Leaves != nil }):
		return what + "all turns are the same"
	case c.Same == 0:
		return what + "they differ from the first turn on"
	case c.Same == 1:
		return what + "the first turn is the same in all"
	}
	return what + fmt.Sprintf("the first %d turns are the same in all", c.Same)
}
