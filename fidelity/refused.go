package fidelity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
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
	x.commandLine()
	x.otherInputs()
	x.madeUp()
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
		near, changes := c.nearest(p.rec, unasked, sameKind)
		if near == nil { // another path of an API may be no model call any more
			near, changes = c.nearest(p.rec, unasked, anyKind)
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
		p.news = nil
		for j := range changes[:min(len(changes), causeChanges)] {
			p.news = append(p.news, changes[j].NewText)
		}
		p.was = nearest.RequestPayload
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

func anyKind(_, _ tape.Kind) bool { return true }

// nearest returns the one of the recorded requests of a comparable kind to the same host that rec differs least from, and
// how; nil where there is none.
func (c *explanation) nearest(rec *tape.Record, among []*tape.Record, comparable func(a, b tape.Kind) bool) (*tape.Record, []Change) {
	var best *tape.Record
	var least []Change
	asked := tape.ExchangeOf(rec.Kind)
	tried := 0
	for _, r := range among {
		ex := tape.ExchangeOf(r.Kind)
		if !comparable(r.Kind, rec.Kind) || tape.HostOf(ex.URL) != tape.HostOf(asked.URL) || tried == maxNearest || c.spent() {
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
		if p.Category != MissingInReplay && p.Category != MissingInRecorded || len(p.Changes) > 0 || c.spent() {
			continue
		}
		side, body := Recorded, payloadOf(p.rec.Kind)
		if p.Category == MissingInRecorded {
			side = Replay
		}
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

// payloadOf is what a record is about, in bytes; nil for none.
func payloadOf(k tape.Kind) *tape.Payload {
	if ex := tape.ExchangeOf(k); ex != nil {
		return ex.RequestPayload
	}
	switch k := k.(type) {
	case *tape.FileWrite:
		return k.Content
	case *tape.FileRead:
		return k.Content
	case *tape.MCPJSONRPC:
		return k.Request
	case *tape.MCPText:
		return k.Payload
	case *tape.WSMessage:
		return k.Payload
	case *tape.DirList:
		return k.Names
	case *tape.EnvRead:
		return k.Value
	}
	return nil
}

// showCall shows what a call that one side has alone asked for; nothing of one that its message says all of.
func (d *Divergence) showCall(call *tape.MCPJSONRPC, b []byte, s Side) {
	c := Change{Path: "parameters", Op: Shown}
	asked := mcptext.Request(call.Method, b, bodies.MaxShown)
	switch asked {
	case "", subjectOfCall(call):
		return
	}
	d.show([]Change{onSide(c, asked, s)})
}

// preview shows a body that one side has alone: of a conversation its last message.
func preview(b []byte, s Side) Change {
	c, shown := bodies.Preview(b)
	return onSide(c, shown, s)
}

// onSide is a change of which one side alone has something to show.
func onSide(c Change, shown string, s Side) Change {
	if s == Replay {
		c.Now = shown
	} else {
		c.Was = shown
	}
	return c
}
