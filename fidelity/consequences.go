package fidelity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// consequences marks every divergence that came after a refused request. A recorded request that was never asked for shows
// no sooner than the refused one that stood in its place.
func (c *explanation) consequences() {
	if c.first == nil {
		return
	}
	for i := range c.found {
		p := &c.found[i]
		if p.rank == 1 && p.at < c.first.at {
			p.at = c.first.at
		}
		switch p.Category {
		case ProcessProgram, ProcessArgs, ProcessCwd:
			continue // how a process began, which the program may have done long before
		}
		if p.refused != nil || p.at <= c.first.at && p.rank == 0 {
			continue
		}
		p.afterRefusal = true
		if p.Follows == "" {
			p.Follows = fmt.Sprintf("follows from the refused request %s (replay seq %d)", c.first.request, c.first.seq)
		}
	}
}

// commandLine says of the first divergence that the program was run with another command line, where nothing shows a nearer
// cause.
func (c *explanation) commandLine() {
	was, now := c.programOf(Recorded), c.programOf(Replay)
	if was == nil || now == nil {
		return
	}
	if c.o.masked(commandOf(was)) == c.o.masked(commandOf(now)) {
		return
	}
	a, b := shownCommand(was), shownCommand(now)
	for i := range c.found {
		p := &c.found[i]
		if drift(p.Category) {
			continue
		}
		if p.Follows == "" && p.rank == 0 && !commandLine(p) {
			p.Follows = "the program was run with another command line (" + shortened(b) + "; " + c.report.names.of(Recorded) + ": " +
				shortened(a) + ")"
		}
		return
	}
}

// shownInputs is how many differing inputs the first divergence names.
const shownInputs = 3

// otherInputs says of the first divergence which inputs the two runs were given in different forms, where nothing shows a
// nearer cause: it is not true then that nothing before it differs.
func (c *explanation) otherInputs() {
	i := slices.IndexFunc(c.found, func(p placed) bool { return !drift(p.Category) })
	if i < 0 || len(c.o.Inputs) == 0 || c.found[i].Follows != "" {
		return
	}
	var names []string
	for _, in := range c.o.Inputs {
		names = append(names, cmp.Or(in.Short, in.Name))
	}
	c.found[i].Follows = "nothing before it differs but what the runs were given: " + list(names, shownInputs)
}

// Hints for a request that differs though the program was started as it was recorded: by what makes it compare.
const (
	hintSame   = "program, arguments, stdin, work tree and environment (but for secrets) are as recorded: "
	hintMadeUp = hintSame + "what differs is made up by the program at each run (a time, a random number), or read from what is not " +
		"covered; a mask in tapedeck.yaml makes what is made up compare, in recordings from then on (docs/masking.md)"
	hintSide  = hintMadeUp + "; where nothing depends on this request, side.ignore says so there, of this recording too"
	hintOrder = hintSame + "what the program did side by side, or in the background, came to its end in another order, or at another " +
		"moment; it compares where the program waits for what it starts before it asks on"
)

// hintFor says what makes a request compare: of an order no mask does.
func hintFor(p *placed) string {
	moved := func(c Change) bool { return c.Op == Moved || c.Op == Added || c.Op == Removed }
	switch _, plain := p.refused.rec.Kind.(*tape.HTTPExchange); {
	case plain:
		return hintSide
	case len(p.Changes) > 0 && !slices.ContainsFunc(slices.Concat(p.Changes, p.rest), func(c Change) bool { return !moved(c) }):
		return hintOrder
	}
	return hintMadeUp
}

// madeUp says of the first divergence that it is the program's own doing, where it is a request that differs and both runs
// were started alike.
func (c *explanation) madeUp() {
	i := slices.IndexFunc(c.found, func(p placed) bool { return !drift(p.Category) })
	if i < 0 || !c.o.SameStart || c.o.Crossed > 0 {
		return
	}
	if p := &c.found[i]; p.refused != nil && p.Recorded != "" && p.Follows == "" {
		p.Hint = hintFor(p)
	}
}

// late reports whether what a record says of when it happened is no more than that it had by the program's end: files are
// looked at then, so that none is the cause of what the program said or of how it ended.
func late(source, of *tape.Record) bool {
	if source == nil || of == nil {
		return false
	}
	switch source.Kind.(type) {
	case *tape.FileWrite, *tape.FileDelete:
		p, ok := of.Kind.(*tape.ProcessSpawn)
		return ok && p.ParentSpawnID == 0
	}
	return false
}

// commandLine reports whether a divergence is of the program's own command line.
func commandLine(p *placed) bool {
	return p.Lane == laneProgram && (p.Category == ProcessArgs || p.Category == ProcessProgram)
}
