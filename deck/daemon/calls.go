package daemon

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A toldCall is a tool call of the main conversation on its way to the daemon.
type toldCall struct {
	call   sessionlog.ToolCall    // without arguments once it was told
	result *sessionlog.ToolResult // nil while it has none, and once it was told
	told   cas.Digest             // of the turn as it was told; zero before
	lost   bool                   // the daemon refused it
	stands bool                   // the whole tape has it: before its end it may only have looked so
}

func (c *toldCall) waits() bool { return c.told.IsZero() && !c.lost }

// forget drops what was told.
func (c *toldCall) forget() { c.call.Arguments, c.result = nil, nil }

// A callBook keeps what was told of the calls of a conversation. A call is known by its id, however often it is heard.
type callBook struct {
	byID  map[string]*toldCall
	open  []*toldCall // that wait, in the order of the calls
	fresh []*toldCall // whose verdict was not asked for, in the same order
	bytes int         // of the results that wait
	// again is told, when the whole tape is read at the end, of a call that was told before and that has its arguments and result
	// once more; nil before.
	again func(*toldCall) error
}

func (b *callBook) hear(e sessionlog.Event) error {
	switch e := e.(type) {
	case *sessionlog.ToolRequested:
		for i := range e.Calls {
			b.made(&e.Calls[i])
		}
	case *sessionlog.ToolCompleted:
		for i := range e.Results {
			if err := b.given(&e.Results[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *callBook) made(c *sessionlog.ToolCall) {
	known := b.byID[c.ID]
	switch {
	case known == nil:
		known = &toldCall{call: sessionlog.ToolCall{ID: c.ID, Name: c.Name, Arguments: bytes.Clone(c.Arguments)}}
		b.byID[c.ID] = known
		b.open, b.fresh = append(b.open, known), append(b.fresh, known)
	case b.again != nil:
		known.call.Arguments = bytes.Clone(c.Arguments)
	}
	known.stands = known.stands || b.again != nil
}

func (b *callBook) given(r *sessionlog.ToolResult) error {
	c := b.byID[r.CallID]
	if c == nil || !c.waits() && b.again == nil {
		return nil
	}
	if c.result == nil && c.waits() {
		b.bytes += len(r.Output)
	}
	c.result = &sessionlog.ToolResult{CallID: r.CallID, Output: bytes.Clone(r.Output), IsError: r.IsError}
	if c.waits() {
		return nil
	}
	defer c.forget()
	return b.again(c)
}

// ready returns the calls that wait and whose result is known, in the order of the calls. One without a result holds nobody up:
// where its conversation has gone on, none will come.
func (b *callBook) ready() []*toldCall {
	var out []*toldCall
	for _, c := range b.open {
		if c.result != nil {
			out = append(out, c)
		}
	}
	return out
}

// tidy strikes out what waits no longer.
func (b *callBook) tidy() {
	left := b.open[:0]
	b.bytes = 0
	for _, c := range b.open {
		if !c.waits() {
			c.forget()
			continue
		}
		if c.result != nil {
			b.bytes += len(c.result.Output)
		}
		left = append(left, c)
	}
	clear(b.open[len(left):])
	b.open = left
}

// gapList are what a daemon does not have of a run, or has otherwise.
type gapList struct {
	refusals    []string // each reason once
	refused     map[string]int
	unjudgeable string // why no verdict is asked for any more; "" while they are
	unjudged    int
	why         string // of the first without a verdict
	changed     int    // turns that stand on the tape otherwise by now
}

func (g *gapList) refuse(why string) {
	if g.refused == nil {
		g.refused = make(map[string]int)
	}
	if g.refused[why] == 0 {
		g.refusals = append(g.refusals, why)
	}
	g.refused[why]++
}

func (g *gapList) unjudge(why string) {
	if g.unjudged++; g.why == "" {
		g.why = why
	}
}

// list says them. err is why the daemon did not answer at last; nil where it did.
func (g *gapList) list(d *Run, err error) []string {
	out := []string{}
	for _, why := range g.refusals {
		said := why
		if why == DroppedLimit {
			said = fmt.Sprintf("a run has %d at most", runtrace.MaxTurns)
		}
		out = append(out, fmt.Sprintf("%s that the daemon did not take: %s", turns(g.refused[why]), said))
	}
	var waiting, beside int
	for _, c := range d.book.byID {
		switch {
		case c.waits() && (c.stands || err != nil):
			waiting++
		case !c.told.IsZero() && !c.stands:
			beside++
		}
	}
	if waiting > 0 {
		out = append(out, fmt.Sprintf("%s that the daemon did not get: %v", turns(waiting), err))
	}
	if beside > 0 {
		out = append(out, turns(beside)+" that the daemon has of another conversation: while it went on that looked like the main one")
	}
	if g.changed > 0 {
		out = append(out, turns(g.changed)+" that the daemon has otherwise than the tape: what is hidden there was not known as a secret yet")
	}
	if n := g.unjudged + len(d.book.fresh); n > 0 {
		why := g.why
		switch {
		case why == "" && err != nil:
			why = err.Error()
		case why == "":
			why = "the daemon did not answer before the tape ended"
		}
		out = append(out, fmt.Sprintf("verdicts of its policies on %s: %s", counted(n, "tool call"), why))
	}
	if len(d.Named.Continued) > 0 {
		all := slices.Concat([]string{d.Named.RunID}, d.Named.Continued)
		out = append(out, fmt.Sprintf("the daemon was started again: of the runs %v the last alone is complete", all))
	}
	return out
}

func turns(n int) string { return counted(n, "turn") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
