package fidelity

import (
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Work that nobody waited for: a program that ends while it downloads something ends that too, and a moment earlier or later it would
// have asked for more or less. So of exchanges that were under way when the program ended, and of those that follow them in the same
// lane, the run's end decides how many there are. They are a note on both sides.

// endsWithin is how long before the program's end, in ms, what it ended itself counts as ended by that: its connections are closed
// before anybody can see that it is gone, on a busy machine long before.
const endsWithin = 1000

// cutWork is what the end of the runs cut.
type cutWork struct {
	ended [2]int64             // when the programs had, by monotonic_ms; 0 where that is not known
	under [2]map[string][]*cut // what was under way then, by lane
	asked map[uint64][]uint64  // arrivals of what the replay asked for and the tape answered, by identity
	count map[string]int       // exchanges that are a note, by lane
}

// A cut is an exchange that was under way when its program ended.
type cut struct {
	id      uint64
	arrival uint64
}

// findCut looks at both sides before anything is set aside.
func (c *laneCompare) findCut() {
	w := &c.cutWork
	w.asked, w.count = make(map[uint64][]uint64), make(map[string]int)
	for s := range c.sides {
		side := &c.sides[s]
		w.under[s] = make(map[string][]*cut)
		if side.program >= 0 && len(side.entries) > 0 {
			w.ended[s] = tape.EndedMS(side.entries[side.program].rec.Kind)
		}
		for i := range side.entries {
			e := &side.entries[i]
			ex := tape.ExchangeOf(e.rec.Kind)
			if ex == nil || ex.Lane == laneUnmatched {
				continue
			}
			id := c.identityOf(e)
			if Side(s) == Replay {
				w.asked[id] = append(w.asked[id], ex.Arrival)
			}
			if w.cuts(Side(s), e.rec) {
				lane := LaneOf(e.rec.Kind)
				w.under[s][lane] = append(w.under[s][lane], &cut{id, ex.Arrival})
			}
		}
	}
	for _, arrivals := range w.asked {
		slices.Sort(arrivals)
	}
}

// cuts reports whether a record is of an exchange that was under way when its program ended.
func (w *cutWork) cuts(s Side, rec *tape.Record) bool {
	return w.ended[s] > 0 && withdrawn(tape.ExchangeOf(rec.Kind)) && rec.MonotonicMS+endsWithin >= w.ended[s]
}

// unfinished reports whether an exchange that one side has alone is there, or not, because a run ended when it did; it is noted then.
func (c *laneCompare) unfinished(s Side, e *entry) bool {
	w, ex := &c.cutWork, tape.ExchangeOf(e.rec.Kind)
	if ex == nil || c.mode == ByteIdentical {
		return false
	}
	lane := LaneOf(e.rec.Kind)
	if s == Replay && ex.Lane == laneUnmatched {
		own := *ex
		own.Lane = ""
		lane = LaneOf(&tape.HTTPExchange{Exchange: own})
	}
	if !w.cuts(s, e.rec) && !w.follows(s, lane, ex.Arrival, c.recordedArrivals) {
		return false
	}
	w.count[lane]++
	return true
}

// follows reports whether what came then in a lane came behind an exchange that was under way when one of the programs ended. recorded
// gives the arrivals of the recorded exchanges of an identity.
func (w *cutWork) follows(s Side, lane string, arrival uint64, recorded func(id uint64) []uint64) bool {
	if s == Replay { // behind what it asked for again and the recorded run did not see the end of
		return slices.ContainsFunc(w.under[Recorded][lane], func(x *cut) bool {
			return slices.ContainsFunc(w.asked[x.id], func(a uint64) bool { return a < arrival })
		})
	}
	if slices.ContainsFunc(w.under[Recorded][lane], func(x *cut) bool { return x.arrival < arrival }) {
		return true
	}
	return slices.ContainsFunc(w.under[Replay][lane], func(x *cut) bool {
		nth, was := slices.Index(w.asked[x.id], x.arrival), recorded(x.id)
		return nth >= 0 && nth < len(was) && was[nth] < arrival
	})
}

// recordedArrivals are the places of the recorded exchanges of an identity, in order.
func (c *laneCompare) recordedArrivals(id uint64) (all []uint64) {
	for i := range c.sides[Recorded].entries {
		e := &c.sides[Recorded].entries[i]
		if e.rec == nil || tape.ExchangeOf(e.rec.Kind) == nil || c.identityOf(e) != id {
			continue
		}
		all = append(all, tape.ExchangeOf(e.rec.Kind).Arrival)
	}
	slices.Sort(all)
	return all
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
	for _, lane := range slices.Sorted(maps.Keys(w.count)) {
		c.note("lane %s: %s cut by the end of the run, which does not gate", lane, counted(w.count[lane], "exchange"))
	}
}
