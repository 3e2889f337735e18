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

// endings is what does not gate because a program ended, or itself ended an exchange.
type endings struct {
	*comparison
	ended     [2]int64                     // when the programs had, by monotonic_ms; 0 where that is not known
	whole     [2]map[string][]*tape.Record // what one side got the whole of, at its end, and the other's end cut; by lane
	processes [2]map[uint64]*tape.Record   // by spawn_id
	begun     [2]map[uint64]uint64         // when a process last asked, or started, something: an ordinal, by opener; nil where nobody ended any
	equal     [2]map[uint64][]*tape.Record // exchanges like those that somebody ended, by identity and in order of arrival

	// What is noted: exchanges by lane, processes, pairs in which the program ended an answer, recorded ones that the replay did not ask for.
	exchanges  map[string]int
	killed     map[string]bool
	endedEarly int
	unneeded   []string
}

// newEndings looks at both sides before anything is left out.
func newEndings(base *comparison) *endings {
	c := &endings{comparison: base, exchanges: make(map[string]int), killed: make(map[string]bool)}
	var someEnded [2]map[uint64]bool // exchanges that somebody ended, by identity
	atOnce(func(s Side) {
		side := &c.sides[s]
		c.whole[s], c.processes[s] = make(map[string][]*tape.Record), make(map[uint64]*tape.Record)
		if program := side.programEntry(); program != nil {
			c.ended[s] = tape.EndedMS(program.rec.Kind)
		}
		someEnded[s] = make(map[uint64]bool)
		for e := range side.records(ofProcess | ofExchange) {
			if p, ok := e.spawn(); ok {
				c.processes[s][p.SpawnID] = e.rec
			} else if cancelled(tape.ExchangeOf(e.rec.Kind)) {
				someEnded[s][c.identityOf(e)] = true
			}
		}
	})
	maps.Copy(someEnded[Recorded], someEnded[Replay])
	if len(someEnded[Recorded]) == 0 {
		return c
	}
	atOnce(func(s Side) { c.findBegun(s, someEnded[Recorded]) })
	for id, was := range c.equal[Recorded] {
		now := c.equal[Replay][id]
		for i := range min(len(was), len(now)) {
			c.keepWhole([2]*tape.Record{was[i], now[i]})
		}
	}
	return c
}

// findBegun finds when each process last began something, and the exchanges that are like some.
func (c *endings) findBegun(s Side, like map[uint64]bool) {
	c.equal[s], c.begun[s] = make(map[uint64][]*tape.Record), make(map[uint64]uint64)
	for e := range c.sides[s].records(ofProcess | ofExchange) {
		if p, ok := e.spawn(); ok {
			c.goesOn(s, p.ParentSpawnID, e.rec)
			continue
		}
		ex := tape.ExchangeOf(e.rec.Kind)
		if !ex.IsTelemetry() {
			c.goesOn(s, numberOf(e.rec, tape.OpenerKey), e.rec)
		}
		if id := c.identityOf(e); ex.Lane != laneUnmatched && like[id] {
			c.equal[s][id] = append(c.equal[s][id], e.rec)
		}
	}
	for _, recs := range c.equal[s] {
		slices.SortFunc(recs, func(a, b *tape.Record) int {
			return cmp.Compare(tape.ExchangeOf(a.Kind).Arrival, tape.ExchangeOf(b.Kind).Arrival)
		})
	}
}

// goesOn keeps that a process asked for something, or started another one, that rec is of.
func (c *endings) goesOn(s Side, process uint64, rec *tape.Record) {
	c.begun[s][process] = max(c.begun[s][process], begunAt(rec))
}

// keepWhole keeps the record of the side that got the whole of an exchange, where that was at its end and the other's end cut it.
func (c *endings) keepWhole(recs [2]*tape.Record) {
	for s, rec := range recs {
		if other := 1 - s; tape.ExchangeOf(rec.Kind).Error == "" && c.atEnd(Side(s), rec) && c.cuts(Side(other), recs[other]) {
			lane := LaneOf(rec.Kind)
			c.whole[s][lane] = append(c.whole[s][lane], rec)
		}
	}
}

// atEnd reports whether a record was made when its program ended, or little before.
func (c *endings) atEnd(s Side, rec *tape.Record) bool {
	return c.ended[s] > 0 && rec.MonotonicMS+endsWithin >= c.ended[s]
}

// cuts reports whether a record is of an exchange that was under way when its program ended, as far as the tape tells: whoever asked for
// something else afterwards had ended it itself.
func (c *endings) cuts(s Side, rec *tape.Record) bool {
	by := numberOf(rec, tape.OpenerKey)
	return cancelled(tape.ExchangeOf(rec.Kind)) && c.atEnd(s, rec) && (by == 0 || c.begun[s][by] < endedAt(rec))
}

// kills reports whether a process lived when its program ended, or was started by one that did, and began little before: whether it came to
// execute anything was then decided by the end.
func (c *endings) kills(s Side, p *tape.ProcessSpawn) bool {
	rec := c.processes[s][p.SpawnID]
	if c.ended[s] == 0 || rec == nil || rec.MonotonicMS-p.DurationMS+endsWithin < c.ended[s] {
		return false
	}
	for range maxAncestors {
		if tape.HasFlag(p, tape.LeftKey) {
			return true
		}
		if rec = c.processes[s][p.ParentSpawnID]; rec == nil {
			return false
		}
		p = rec.Kind.(*tape.ProcessSpawn)
	}
	return false
}

const maxAncestors = 100

// unfinished reports whether an exchange or a process that one side has alone is there, or not, because a run ended when it did. It is
// noted then.
func (c *endings) unfinished(s Side, e *entry) bool {
	ex := tape.ExchangeOf(e.rec.Kind)
	if p, ok := e.rec.Kind.(*tape.ProcessSpawn); ok && c.mode != ByteIdentical && c.kills(s, p) {
		c.killed[subjectOf(p)] = true
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
	chained := c.atEnd(s, e.rec) && slices.ContainsFunc(c.whole[s][lane], func(x *tape.Record) bool { return behind(e.rec, x) })
	if !chained && !c.cuts(s, e.rec) {
		return false
	}
	c.exchanges[lane]++
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
func (c *endings) cutPair(p pair) bool {
	if !c.cuts(Recorded, p.a.rec) && !c.cuts(Replay, p.b.rec) {
		return false
	}
	c.exchanges[LaneOf(p.a.rec.Kind)]++
	return true
}

// pair counts a pair of exchanges one of which the program itself ended, where they differ for that.
func (c *endings) pair(p pair) {
	a, b := tape.ExchangeOf(p.a.rec.Kind), tape.ExchangeOf(p.b.rec.Kind)
	if a != nil && b != nil && racy(a, b) && !c.cutPair(p) && resultOf(p.a.rec.Kind) != resultOf(p.b.rec.Kind) {
		c.endedEarly++
	}
}

// needless reports whether a recorded exchange that the replay never asked for is a note: the program had ended it itself, while another
// one of the same request was under way, which the replay has asked for and got an answer to. A program that sends a request twice, to take
// the answer that comes first, need not do so where that comes at once.
func (c *endings) needless(e *entry) bool {
	if !cancelled(tape.ExchangeOf(e.rec.Kind)) || len(c.equal[Replay][e.id]) == 0 ||
		!slices.ContainsFunc(c.equal[Recorded][e.id], func(x *tape.Record) bool { return x != e.rec && together(x, e.rec) }) {
		return false
	}
	c.unneeded = append(c.unneeded, describe(e.rec.Kind))
	return true
}

// together reports whether two exchanges were under way at once, as far as their tape tells.
func together(x, y *tape.Record) bool { return begunAt(x) < endedAt(y) && begunAt(y) < endedAt(x) }

// tell says what did not gate.
func (c *endings) tell() {
	if c.endedEarly > 0 {
		c.note("the program itself ended %s early, which does not gate", counted(c.endedEarly, "answer"))
	}
	if n := len(c.unneeded); n > 0 {
		c.note("the program itself had ended %s while recording, sent beside an equal one, and the replay did not send it twice, which does "+
			"not gate: %s", counted(n, "request"), list(c.unneeded, shownInputs))
	}
	for _, process := range slices.Sorted(maps.Keys(c.killed)) {
		c.note("%s cut by the end of the run, which does not gate", process)
	}
	for _, lane := range slices.Sorted(maps.Keys(c.exchanges)) {
		c.note("lane %s: %s cut by the end of the run, which does not gate", lane, counted(c.exchanges[lane], "exchange"))
	}
}
