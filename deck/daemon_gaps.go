package deck

import (
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// daemonGaps are what a daemon does not have of a run, or has otherwise.
type daemonGaps struct {
	refusals    []string // each reason once
	refused     map[string]int
	unjudgeable string // why no verdict is asked for any more; "" while they are
	unjudged    int
	why         string // of the first without a verdict
	changed     int    // turns that stand on the tape otherwise by now
}

func (g *daemonGaps) refuse(why string) {
	if g.refused == nil {
		g.refused = make(map[string]int)
	}
	if g.refused[why] == 0 {
		g.refusals = append(g.refusals, why)
	}
	g.refused[why]++
}

func (g *daemonGaps) unjudge(why string) {
	if g.unjudged++; g.why == "" {
		g.why = why
	}
}

// list says them. err is why the daemon did not answer at last; nil where it did.
func (g *daemonGaps) list(d *daemonRun, err error) []string {
	out := []string{}
	for _, why := range g.refusals {
		said := why
		if why == droppedLimit {
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
	if len(d.named.Continued) > 0 {
		all := slices.Concat([]string{d.named.RunID}, d.named.Continued)
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
