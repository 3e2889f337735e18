package fidelity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Work that nobody waited for: a program that ends while it downloads something ends that too, and a moment earlier or later it would
// have asked for more or less. So the run's end decides whether there are exchanges that were under way when the program ended, and
// those of the same lane that began once the other run had got the whole of such a one, and whether processes that were killed then had
// begun. They are a note on both sides.

// endsWithin is how long before the program's end, in ms, what it ended itself counts as ended by that: its connections are closed
// before anybody can see that it is gone, on a busy machine long before.
const endsWithin = 1000

// cutWork is what the end of the runs cut.
type cutWork struct {
	ended [2]int64                     // when the programs had, by monotonic_ms; 0 where that is not known
	whole [2]map[string][]*tape.Record // what one side got the whole of, at its end, and the other's end cut; by lane
	count map[string]int               // exchanges that are a note, by lane

	processes [2]map[uint64]*tape.Record // by spawn_id
	killed    map[string]bool            // processes that are a note
}

// findCut looks at both sides before anything is set aside.
func (c *laneCompare) findCut() {
	w := &c.cutWork
	w.count, w.killed = make(map[string]int), make(map[string]bool)
	var all [2]map[uint64][]*tape.Record // exchanges, by identity and in order of arrival
	for s := range c.sides {
		side := &c.sides[s]
		all[s], w.whole[s] = make(map[uint64][]*tape.Record), make(map[string][]*tape.Record)
		w.processes[s] = make(map[uint64]*tape.Record)
		if side.program >= 0 && len(side.entries) > 0 {
			w.ended[s] = tape.EndedMS(side.entries[side.program].rec.Kind)
		}
		for i := range side.entries {
			e := &side.entries[i]
			if p, ok := e.rec.Kind.(*tape.ProcessSpawn); ok {
				w.processes[s][p.SpawnID] = e.rec
			}
			if ex := tape.ExchangeOf(e.rec.Kind); ex != nil && ex.Lane != laneUnmatched {
				id := c.identityOf(e)
				all[s][id] = append(all[s][id], e.rec)
			}
		}
		for _, recs := range all[s] {
			slices.SortFunc(recs, func(a, b *tape.Record) int {
				return cmp.Compare(tape.ExchangeOf(a.Kind).Arrival, tape.ExchangeOf(b.Kind).Arrival)
			})
		}
	}
	for id, was := range all[Recorded] {
		now := all[Replay][id]
		for i := range min(len(was), len(now)) {
			w.pair([2]*tape.Record{was[i], now[i]})
		}
	}
}

// pair keeps the record of the side that got the whole of an exchange, where that was at its end and the other's end cut it.
func (w *cutWork) pair(recs [2]*tape.Record) {
	for s, rec := range recs {
		if other := 1 - s; tape.ExchangeOf(rec.Kind).Error == "" && w.atEnd(Side(s), rec) && w.cuts(Side(other), recs[other]) {
			lane := LaneOf(rec.Kind)
			w.whole[s][lane] = append(w.whole[s][lane], rec)
		}
	}
}

// atEnd reports whether a record was made when its program ended, or little before.
func (w *cutWork) atEnd(s Side, rec *tape.Record) bool {
	return w.ended[s] > 0 && rec.MonotonicMS+endsWithin >= w.ended[s]
}

// cuts reports whether a record is of an exchange that was under way when its program ended.
func (w *cutWork) cuts(s Side, rec *tape.Record) bool {
	return withdrawn(tape.ExchangeOf(rec.Kind)) && w.atEnd(s, rec)
}

// kills reports whether a process lived when its program ended, or was started by one that did, and began little before: whether it came to
// execute anything was then decided by the end.
func (w *cutWork) kills(s Side, p *tape.ProcessSpawn) bool {
	rec := w.processes[s][p.SpawnID]
	if w.ended[s] == 0 || rec == nil || rec.MonotonicMS-p.DurationMS+endsWithin < w.ended[s] {
		return false
	}
	for range maxAncestors {
		if tape.HasFlag(p, tape.LeftKey) {
			return true
		}
		if rec = w.processes[s][p.ParentSpawnID]; rec == nil {
			return false
		}
		p = rec.Kind.(*tape.ProcessSpawn)
	}
	return false
}

const maxAncestors = 100

// unfinished reports whether an exchange or a process that one side has alone is there, or not, because a run ended when it did; it is noted then.
func (c *laneCompare) unfinished(s Side, e *entry) bool {
	w, ex := &c.cutWork, tape.ExchangeOf(e.rec.Kind)
	if p, ok := e.rec.Kind.(*tape.ProcessSpawn); ok && c.mode != ByteIdentical && w.kills(s, p) {
		w.killed[subjectOf(p)] = true
		return true
	}
	if ex == nil || c.mode == ByteIdentical {
		return false
	}
	lane := LaneOf(e.rec.Kind)
	if s == Replay && ex.Lane == laneUnmatched {
		own := *ex
		own.Lane = ""
		lane = LaneOf(&tape.HTTPExchange{Exchange: own})
	}
	chained := w.atEnd(s, e.rec) && slices.ContainsFunc(w.whole[s][lane], func(x *tape.Record) bool { return behind(e.rec, x) })
	if !chained && !w.cuts(s, e.rec) {
		return false
	}
	w.count[lane]++
	return true
}

// behind reports whether the exchange of rec began once that of x had ended, as far as the tape tells: what was under way together with
// x was not begun by its end. An answer without a body does not tell when it was asked for; a refusal comes at once.
func behind(rec, x *tape.Record) bool {
	ex := tape.ExchangeOf(rec.Kind)
	begunMS, first := rec.MonotonicMS, rec.G
	if n := len(ex.Stream); n > 0 {
		begunMS -= ex.Stream[n-1].TMS
		first = ex.Stream[0].G
	} else if ex.Lane != laneUnmatched {
		return false
	}
	return ex.Arrival > tape.ExchangeOf(x.Kind).Arrival && begunMS >= x.MonotonicMS && first > x.G
}

// cutPair counts a pair of which the end of a run cut one, and reports whether it is such a pair.
func (c *laneCompare) cutPair(p pair) bool {
	w := &c.cutWork
	if !w.cuts(Recorded, p.a.rec) && !w.cuts(Replay, p.b.rec) {
		return false
	}
	w.count[LaneOf(p.a.rec.Kind)]++
	return true
}

// note says what did not gate.
func (w *cutWork) note(c *laneCompare) {
	for _, process := range slices.Sorted(maps.Keys(w.killed)) {
		c.note("%s cut by the end of the run, which does not gate", process)
	}
	for _, lane := range slices.Sorted(maps.Keys(w.count)) {
		c.note("lane %s: %s cut by the end of the run, which does not gate", lane, counted(w.count[lane], "exchange"))
	}
}
