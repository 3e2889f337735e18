package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Plain requests that both runs made one after the other, each once the one before had ended, follow from each other: another order of
// them is another program where they went to two hosts, and a note where to one. Where any two of a run were under way at once their order may be chance.

const placeKey = tape.PlaceKey

// keepsOrder keeps a pair of plain requests.
func (c *laneCompare) keepsOrder(p pair) {
	_, was := p.a.rec.Kind.(*tape.HTTPExchange)
	_, now := p.b.rec.Kind.(*tape.HTTPExchange)
	if was && now && c.mode != Outcome {
		c.plain = append(c.plain, p)
	}
}

// came is when a plain request came, as an ordinal; 0 where its tape does not tell.
func came(rec *tape.Record) uint64 {
	n, _ := strconv.ParseUint(string(tape.FieldValue(rec.Kind.(*tape.HTTPExchange).Extra, placeKey)), 10, 64)
	return n
}

// plainOrder reports the first plain request that came before one which it had followed.
func (c *laneCompare) plainOrder() {
	was, ok := sequence(c.plain, func(p pair) *tape.Record { return p.a.rec })
	now, okNow := sequence(c.plain, func(p pair) *tape.Record { return p.b.rec })
	if !ok || !okNow {
		return
	}
	for i := range was {
		first, earlier := was[i], now[i]
		if first == earlier {
			continue
		}
		if hostOf(first) == hostOf(earlier) { // what a program sends to one host side by side may be over before the next is there
			c.note("plain requests to %s came in another order, which does not gate", hostOf(first))
			return
		}
		d := Divergence{
			Category: HTTPOrder, Lane: LaneOf(earlier.b.rec.Kind), Seq: new(earlier.a.rec.Seq), ReplaySeq: new(earlier.b.rec.Seq),
			Recorded: describe(earlier.a.rec.Kind), Replay: describe(earlier.b.rec.Kind),
			Message: fmt.Sprintf("another order: %s comes before %s, which it followed", subjectOf(earlier.b.rec.Kind), subjectOf(first.a.rec.Kind)),
		}
		c.place(placed{at: earlier.b.at, Divergence: d, rec: earlier.b.rec})
		return
	}
}

func hostOf(p pair) string { return tape.HostOf(tape.ExchangeOf(p.a.rec.Kind).URL) }

// sequence sorts pairs by when the requests of one side came; ok is false where two of them were under way at once, or the tape does not
// tell.
func sequence(pairs []pair, of func(pair) *tape.Record) (out []pair, ok bool) {
	out = slices.Clone(pairs)
	slices.SortFunc(out, func(x, y pair) int { return cmp.Compare(came(of(x)), came(of(y))) })
	last := uint64(0)
	for _, p := range out {
		rec := of(p)
		if at := came(rec); at == 0 || at < last {
			return nil, false
		}
		last = rec.G
	}
	return out, true
}
