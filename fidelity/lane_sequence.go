package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Requests that one thread made in both runs one after the other, each once the one before had ended, follow from each other: another
// order of them is another program. Where any two of a thread were under way at once their order may be chance. Of a tape that does not
// tell who asked, plain requests count as those of one thread; what such ones ask of one host in another order is a note.

// placeKey is the key of an exchange that has the recorder's ordinal of when its request came.
const placeKey = "at"

// numberOf is what a record has under a key; 0 for nothing.
func numberOf(rec *tape.Record, key string) uint64 {
	n, _ := strconv.ParseUint(string(tape.FieldValue(*tape.Extras(rec.Kind), key)), 10, 64)
	return n
}

// keepsOrder keeps a pair of requests by who made them.
func (c *laneCompare) keepsOrder(p pair) {
	if tape.ExchangeOf(p.a.rec.Kind) == nil || tape.ExchangeOf(p.b.rec.Kind) == nil || c.mode == Outcome {
		return
	}
	by := numberOf(p.a.rec, tape.OpenerKey)
	if _, plain := p.a.rec.Kind.(*tape.HTTPExchange); by == 0 && !plain {
		return
	}
	if c.asked == nil {
		c.asked = make(map[uint64][]pair)
	}
	c.asked[by] = append(c.asked[by], p)
}

// requestOrder reports of each thread the first request that came before one which it had followed.
func (c *laneCompare) requestOrder() {
	for _, by := range slices.Sorted(maps.Keys(c.asked)) {
		was, ok := sequence(c.asked[by], func(p pair) *tape.Record { return p.a.rec })
		now, okNow := sequence(c.asked[by], func(p pair) *tape.Record { return p.b.rec })
		if !ok || !okNow {
			continue
		}
		for i := range was {
			if was[i] != now[i] {
				c.followed(was[i], now[i], by != 0)
				break
			}
		}
	}
}

// followed says that earlier came before first.
func (c *laneCompare) followed(first, earlier pair, oneThread bool) {
	if !oneThread && hostOf(first) == hostOf(earlier) {
		c.note("plain requests to %s came in another order, which does not gate", hostOf(first))
		return
	}
	d := Divergence{
		Category: HTTPOrder, Lane: LaneOf(earlier.b.rec.Kind), Seq: new(earlier.a.rec.Seq), ReplaySeq: new(earlier.b.rec.Seq),
		Recorded: describe(earlier.a.rec.Kind), Replay: describe(earlier.b.rec.Kind),
		Message: fmt.Sprintf("another order: %s comes before %s, which it followed", subjectOf(earlier.b.rec.Kind), subjectOf(first.a.rec.Kind)),
	}
	c.place(placed{at: earlier.b.at, Divergence: d, rec: earlier.b.rec})
}

func hostOf(p pair) string { return tape.HostOf(tape.ExchangeOf(p.a.rec.Kind).URL) }

// sequence sorts pairs by when the requests of one side came; ok is false where two of them were under way at once, or the tape does not
// tell.
func sequence(pairs []pair, of func(pair) *tape.Record) (out []pair, ok bool) {
	came := func(p pair) uint64 { return numberOf(of(p), placeKey) }
	out = slices.Clone(pairs)
	slices.SortFunc(out, func(x, y pair) int { return cmp.Compare(came(x), came(y)) })
	last := uint64(0)
	for _, p := range out {
		if at := came(p); at == 0 || at < last {
			return nil, false
		}
		last = of(p).G
	}
	return out, true
}

// callOrder says that records of a lane came in another order: of calls of a tool server that in both runs had been answered before the
// other was asked, as a divergence; of others as a note, for their order may be chance.
func (c *laneCompare) callOrder(lane string, pairs []pair, moved int) {
	for _, p := range pairs {
		i := slices.IndexFunc(pairs, func(q pair) bool { return p.moved && p.b != nil && q.a != nil && q.b != nil && crosses(p, q) })
		if i < 0 {
			continue
		}
		first, earlier := pairs[i], p
		if answeredBefore(p.a, first.a) {
			first, earlier = earlier, first
		}
		d := Divergence{
			Category: MCPOrder, Lane: lane, Seq: new(earlier.a.rec.Seq), ReplaySeq: new(earlier.b.rec.Seq),
			Recorded: describe(earlier.a.rec.Kind), Replay: describe(earlier.b.rec.Kind),
			Message: fmt.Sprintf("another order: %s comes before %s, which it followed", subjectOf(earlier.b.rec.Kind), subjectOf(first.a.rec.Kind)),
		}
		c.place(placed{at: earlier.b.at, Divergence: d, rec: earlier.b.rec})
		return
	}
	c.note("lane %s: %s came in another order, the first %s", lane, records(moved), firstMoved(pairs, c.o.Sides))
}

// crosses reports whether two calls follow from each other in both runs, but not in one order.
func crosses(p, q pair) bool {
	return answeredBefore(p.a, q.a) && answeredBefore(q.b, p.b) || answeredBefore(q.a, p.a) && answeredBefore(p.b, q.b)
}

// answeredBefore reports whether a call of a tool server had its answer before another of its conversation was made.
func answeredBefore(x, y *entry) bool {
	a, b := callOf(x.rec), callOf(y.rec)
	return a != nil && b != nil && a.From != fromServer && b.From != fromServer && a.Conversation == b.Conversation &&
		a.Answered > 0 && a.Answered < b.Arrival
}
