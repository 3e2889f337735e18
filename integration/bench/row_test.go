package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// A group is the rows of one part of the project.
type group struct {
	title string
	note  string   // what holds for several of its rows; "" for nothing
	peers []string // columns beside the measured one; nil for none
	rows  []row
}

// A row is one promise.
type row struct {
	name    string        // PART/WHAT, which -rows chooses by
	what    string        // is measured, and against what
	unit    string        // of the figure: "x" for a ratio, "ms", "MiB" …
	target  target        // the zero one: the figure is told, not held against anything
	from    source        // of the figure
	needs   []need        // beside Go and this checkout
	timeout time.Duration // 0 for defaultTimeout
}

const defaultTimeout = 10 * time.Minute

// A target is what a figure should be.
type target struct {
	op    string // "<=", ">=" or "<"
	bound float64
}

func atMost(bound float64) target  { return target{"<=", bound} }
func atLeast(bound float64) target { return target{">=", bound} }
func below(bound float64) target   { return target{"<", bound} }

// met reports whether a figure reaches the target.
func (t target) met(value float64) bool {
	switch t.op {
	case "<=":
		return value <= t.bound
	case ">=":
		return value >= t.bound
	case "<":
		return value < t.bound
	}
	return true
}

// text is the target with its unit; "" for none.
func (t target) text(unit string) string {
	signs := map[string]string{"<=": "≤", ">=": "≥", "<": "<"}
	if t.op == "" {
		return ""
	}
	return signs[t.op] + " " + strconv.FormatFloat(t.bound, 'g', -1, 64) + spaced(unit)
}

// spaced is a unit as it stands behind a figure.
func spaced(unit string) string {
	if unit == "x" || unit == "" {
		return unit
	}
	return " " + unit
}

// A reading is what a source found.
type reading struct {
	value  float64
	beside string // further figures, for people
	peers  []peerReading
	curve  *curve // how it grows; nil for a figure that stands alone
}

// A peerReading is what a peer makes of the same work, in a column of its own; Why says why it was not measured.
type peerReading struct {
	Name  string
	Value *float64 `json:",omitempty"` // a ratio
	Why   string   `json:",omitempty"`
}

// cell is the reading as it stands in a table.
func (p *peerReading) cell() string {
	if p.Value == nil {
		return "needs " + p.Why
	}
	return figure(*p.Value) + "x"
}

// A source gives the figure of a row.
type source interface {
	// how says in a sentence or a command how the figure comes about.
	how(short bool) string
	measure(ctx context.Context, e *env) (reading, error)
}

// A need is something that a row cannot do without. It returns what is missing and how to get it; "" when it is there.
type need func(ctx context.Context, e *env) string

// whole is a source that measures whole programs.
type whole struct {
	told string
	run  func(ctx context.Context, e *env) (reading, error)
}

func (w whole) how(bool) string { return w.told }

func (w whole) measure(ctx context.Context, e *env) (reading, error) { return w.run(ctx, e) }

// States of a result.
const (
	stateMet         = "met"
	stateMissed      = "missed"
	stateTold        = "told" // there is no target
	stateFailed      = "failed"
	stateNotMeasured = "not measured"
)

// A result is a row and what came of it.
type result struct {
	Name   string
	What   string
	Target string
	Unit   string
	How    string
	outcome
}

// An outcome is what measuring a row found. It is kept beside the page for the runs that measure other rows.
type outcome struct {
	State   string
	Value   *float64      `json:",omitempty"`
	Beside  string        `json:",omitempty"`
	Peers   []peerReading `json:",omitempty"`
	Curve   *curve        `json:",omitempty"` // nil for none
	Why     string        `json:",omitempty"` // it failed or was not measured
	Seconds float64       `json:"-"`          // that measuring took
	At      string        // the commit and its date
}

// kept are outcomes by the names of their rows.
type kept map[string]*outcome

// measured is the figure with its unit, as people read it.
func (r *result) measured() string {
	if r.Value == nil {
		return r.State + ": " + r.Why
	}
	return figure(*r.Value) + spaced(r.Unit)
}

// figure writes a number with three digits that count.
func figure(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return fmt.Sprintf("%.3g", v)
}
