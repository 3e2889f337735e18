package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxNearest is how many recorded requests one that was refused is compared with.
const maxNearest = 16

// explanation says why divergences are there, once all are found.
type explanation struct {
	*comparison
	first *refusal // of the requests that nothing answered
}

// explainAll orders what was found by where the replay had come to, explains it and reports it.
func explainAll(c *comparison) {
	x := &explanation{comparison: c}
	for i := range c.refusals {
		if r := &c.refusals[i]; x.first == nil || r.at < x.first.at {
			x.first = r
		}
	}
	x.refused()
	x.previews()
	x.consequences()
	slices.SortStableFunc(c.found, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq(), b.seq()))
	})
	x.trace()
	x.explainFirst()
	for i := range c.found {
		p := &c.found[i]
		p.tell()
		if p.refused != nil {
			x.refusedRef(p).Cause = p.Cause
		}
		c.report.add(p.Divergence)
	}
}

// refused says of every refused request how it differs from the recorded one that is most like it and was never asked for:
// the one in whose place it came. Where there is none the recorder's own words stay.
func (c *explanation) refused() {
	var unasked []*tape.Record
	for i := range c.found {
		if p := &c.found[i]; p.Category == MissingInReplay && tape.ExchangeOf(p.rec.Kind) != nil {
			unasked = append(unasked, p.rec)
		}
	}
	before := make(map[request]uint64)
	for i := range c.found {
		p := &c.found[i]
		if p.refused == nil {
			continue
		}
		asked, _ := requestOf(p.rec.Kind)
		asked.failure = "" // which says how often it was asked before
		if seq, again := before[*asked]; again {
			p.Follows, p.Cause, p.afterRefusal = fmt.Sprintf("asks again what was refused at replay seq %d", seq), "", true
			continue
		}
		before[*asked] = *p.ReplaySeq
		if tape.ExchangeOf(p.rec.Kind) == nil {
			continue // what it came in place of stands beside it, where there is one
		}
		near, changes := c.nearest(p.rec, unasked, true)
		if near == nil { // another path of an API may be no model call any more
			near, changes = c.nearest(p.rec, unasked, false)
		}
		if near == nil {
			continue
		}
		unasked = slices.DeleteFunc(unasked, func(r *tape.Record) bool { return r == near })
		c.inPlaceOf(near, p)
		p.Cause = ""
		p.show(changes)
		p.Nearest, p.Recorded = new(near.Seq), describe(near.Kind)
		nearest := tape.ExchangeOf(near.Kind)
		p.news, p.was = newsIn(p.Changes), nearest.RequestPayload
	}
}

// inPlaceOf says of a recorded request that was never asked for which refused one is the nearest to it.
func (c *explanation) inPlaceOf(near *tape.Record, refused *placed) {
	for i := range c.found {
		if p := &c.found[i]; p.rec == near && p.Category == MissingInReplay {
			p.Follows = fmt.Sprintf("the refused request at replay seq %d is the nearest to it", *refused.Seq)
		}
	}
}

// refusedRef is the entry of a refused request in the report's list.
func (c *explanation) refusedRef(p *placed) *RequestRef {
	for i := range c.report.Refused {
		if ref := &c.report.Refused[i]; ref.Seq == p.ReplaySeq {
			return ref
		}
	}
	return new(RequestRef)
}

// nearest returns the one of the recorded requests to the same host, of the same kind where that is asked for, that rec differs least
// from, and how; nil where there is none.
func (c *explanation) nearest(rec *tape.Record, among []*tape.Record, kindred bool) (*tape.Record, []Change) {
	var best *tape.Record
	var least []Change
	asked := tape.ExchangeOf(rec.Kind)
	tried := 0
	for _, r := range among {
		ex := tape.ExchangeOf(r.Kind)
		if kindred && !sameKind(r.Kind, rec.Kind) || tape.HostOf(ex.URL) != tape.HostOf(asked.URL) || tried == maxNearest || c.spent() {
			continue
		}
		tried++
		changes := c.requestChanges(r, rec)
		if len(changes) > 0 && (best == nil || len(changes) < len(least)) {
			best, least = r, changes
		}
	}
	return best, least
}

// previews shows what a record holds that one side has alone, in one line: the body of a request, the content of a file.
func (c *explanation) previews() {
	for i := range c.found {
		p := &c.found[i]
		if !alone(&p.Divergence) || len(p.Changes) > 0 || c.spent() {
			continue
		}
		side, body := p.side(), aboutOf(p.rec.Kind).body
		if body == nil || body.Len == 0 {
			continue
		}
		b, err := c.bytes(body, side)
		if err != nil {
			continue
		}
		c.done++
		if call, ok := p.rec.Kind.(*tape.MCPJSONRPC); ok {
			p.showCall(call, b, side)
			continue
		}
		p.show([]Change{preview(b, side)})
	}
}

// consequences marks every divergence that came after a refused request. A recorded request that was never asked for shows
// no sooner than the refused one that stood in its place, unless the replay had come past it by then.
func (c *explanation) consequences() {
	if c.first == nil {
		return
	}
	for i := range c.found {
		p := &c.found[i]
		if p.rank == 1 && p.at < c.first.at {
			if p.next > 0 && p.next < c.first.at && p.Follows == "" {
				continue
			}
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

// explainFirst says of the first divergence what it comes from, where nothing shows a nearer cause.
func (c *explanation) explainFirst() {
	i := slices.IndexFunc(c.found, func(p placed) bool { return !drift(p.Category) })
	if i < 0 {
		return
	}
	p := &c.found[i]
	p.Follows = cmp.Or(p.Follows, c.commandLine(p), c.otherInputs())
	if c.o.SameStart && c.o.Crossed == 0 && p.refused != nil && p.Recorded != "" && p.Follows == "" {
		p.Hint = hintFor(p)
		if len(c.o.Unseen) > 0 {
			p.Hint = strings.Replace(p.Hint, "are as recorded: ", fmt.Sprintf(hintUnseen, list(c.o.Unseen, shownInputs)), 1)
		}
	}
}

// commandLine says that the program was run with another command line; "" where it was not, or that is the divergence.
func (c *explanation) commandLine(p *placed) string {
	was, now := c.programOf(Recorded), c.programOf(Replay)
	if was == nil || now == nil || c.o.masked(commandOf(was)) == c.o.masked(commandOf(now)) {
		return ""
	}
	if p.rank != 0 || p.Lane == laneProgram && (p.Category == ProcessArgs || p.Category == ProcessProgram) {
		return ""
	}
	return fmt.Sprintf("the program was run with another command line (%s; %s: %s)", shortened(shownCommand(now)),
		c.report.names.of(Recorded), shortened(shownCommand(was)))
}

// shownInputs is how many differing inputs the first divergence names.
const shownInputs = 3

// otherInputs says which inputs the two runs were given in different forms: it is not true then that nothing before it differs.
func (c *explanation) otherInputs() string {
	var names []string
	for _, in := range c.o.Inputs {
		names = append(names, cmp.Or(in.Short, in.Name))
	}
	if len(names) == 0 {
		return ""
	}
	return "nothing before it differs but what the runs were given: " + list(names, shownInputs)
}

// Hints for a request that differs though the program was started as it was recorded: by what makes it compare.
const (
	hintUnseen = "are as recorded, but what stands in %s is not compared: where that is as it was, "
	hintSame   = "program, arguments, stdin, work tree and environment (but for secrets) are as recorded: "
	hintMadeUp = hintSame + "what differs is made up by the program at each run (a time, a random number), or read from what is not " +
		"covered; a mask in tapedeck.yaml makes what is made up compare, in recordings from then on (docs/masking.md)"
	hintSide  = hintMadeUp + "; where nothing depends on this request, side.ignore says so there, of this recording too"
	hintOrder = hintSame + "what the program did side by side, or in the background, came to its end in another order, or at another " +
		"moment; it compares where the program waits for what it starts before it asks on"
)

// hintFor says what makes a request compare: of an order no mask does.
func hintFor(p *placed) string {
	stays := func(c Change) bool { return c.Op != Moved && c.Op != Added && c.Op != Removed }
	switch _, plain := p.refused.rec.Kind.(*tape.HTTPExchange); {
	case plain:
		return hintSide
	case len(p.Changes) > 0 && !slices.ContainsFunc(slices.Concat(p.Changes, p.rest), stays):
		return hintOrder
	}
	return hintMadeUp
}
