package fidelity

import (
	"math"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// pairKey is what two pairs share that are one to a person.
type pairKey struct{ place, mask, was, now string }

// A verdict of judge.
type judgement uint8

const (
	inDoubt judgement = iota // masked: nothing tells whether the values differ by chance
	settled                  // a note
	differs                  // a divergence
)

// judge says what a place is at which a mask hides a difference. What the programs were given is no chance. Else a mask that guesses leaves a
// doubt, but where both runs were given time and randomness: what differs there all the same was measured, or read of the clock by another.
func (c *maskings) judge(h *hidden, of pair) judgement {
	switch {
	case h.own, h.mask == AnswerIDs, masks.IsPath(h.mask), masks.Unrepeatable(h.mask, h.now), c.crossed(h):
		return settled
	case h.mask == SecretMask && (!c.exactly() || c.o.ProgramReplaced): // a person may have given it another
		return inDoubt
	case h.mask != SecretMask && c.isGiven(h):
		return differs
	case !c.exactly(), c.ownTime(h):
		return inDoubt
	case masks.IsDuration(h.mask) && c.measured(h, of):
		return settled
	}
	return differs
}

// exactly reports whether no mask that guesses holds: both runs were given time and randomness, or bytes count.
func (c *maskings) exactly() bool { return c.o.Exact || c.mode == ByteIdentical }

// ownTime reports whether two values may be times of which a replay read its own.
func (c *maskings) ownTime(h *hidden) bool {
	return c.o.OwnTimes && masks.IsTime(h.mask) && !c.isNew(h) && c.mode != ByteIdentical
}

// crossed reports whether both values are times that their runs read: who read which is a matter of moments.
func (c *maskings) crossed(h *hidden) bool {
	if c.mode == ByteIdentical || c.isNew(h) {
		return false
	}
	was, okWas := masks.MomentOf(h.mask, h.was)
	now, okNow := masks.MomentOf(h.mask, h.now)
	return okWas && okNow && was.Unit == now.Unit &&
		slices.ContainsFunc(c.o.Times[Recorded], was.Has) && slices.ContainsFunc(c.o.Times[Replay], now.Has)
}

// isNew reports whether the value of the replay stands in what is new in its program.
func (c *maskings) isNew(h *hidden) bool { return c.o.New != nil && c.o.New(h.now) }

// measured tells two measurements from two settings, one of which the program of the replay may hold: a measured time is no longer
// than the run was by then, or two readings of the time since the machine began lie as far apart as the runs; and a measurement is
// seldom round.
func (c *maskings) measured(h *hidden, of pair) bool {
	between := float64(of.b.rec.VirtualTimeMS - of.a.rec.VirtualTimeMS)
	apart := math.Abs(h.ms[Replay] - h.ms[Recorded] - between)
	possible := h.ms[Recorded] <= elapsed(of.a) && h.ms[Replay] <= elapsed(of.b) || between > 0 && apart <= max(elapsed(of.a), elapsed(of.b))
	return possible && !(h.round[Recorded] && h.round[Replay]) && !c.isNew(h)
}

// elapsed is how long a run had gone on when a record was written, in ms; a tape that does not say allows anything.
func elapsed(e *entry) float64 {
	if e.rec.MonotonicMS <= 0 {
		return 1e18
	}
	return float64(e.rec.MonotonicMS)
}

// minGiven is how many bytes of a value are no chance in what a program was given.
const minGiven = 4

// isGiven reports whether what the programs were given, their arguments or files that differ, holds the value of one side there and
// not that of the other. Arguments that hold both, each its own, may be names that a caller makes up; where no mask guesses they are none.
func (c *maskings) isGiven(h *hidden) bool {
	if h.argument {
		return false
	}
	if c.given == nil {
		c.given = c.inputs(false)
	}
	holds := func(text, value string) bool { return len(value) >= minGiven && strings.Contains(text, value) }
	args := c.given[0]
	was, now := holds(args.was, h.was), holds(args.now, h.now)
	return was != now || was && c.exactly() || slices.ContainsFunc(c.given[1:], func(s source) bool {
		return holds(s.was, h.was) && !holds(s.now, h.was) || holds(s.now, h.now) && !holds(s.was, h.now)
	})
}

// hide lists what masks hid in a pair of records, and reports as divergences what is none of their business.
func (c *maskings) hide(lane string, of pair, at int, found []hidden) {
	for i := range found {
		h := &found[i]
		switch j := c.judge(h, of); j {
		case differs:
			c.unmask(lane, of, at, h)
		default:
			c.list(lane, of, h, j == settled)
		}
	}
}

func (c *maskings) list(lane string, of pair, h *hidden, settled bool) {
	key := pairKey{h.place, h.mask, h.was, h.now}
	if i, ok := c.index[key]; ok {
		c.report.MaskedPairs[i].Records++
		return
	}
	if len(c.report.MaskedPairs) >= MaxMaskedPairs {
		if c.report.MoreMaskedPairs++; !settled {
			c.report.moreDoubtful++
		}
		return
	}
	c.index[key] = len(c.report.MaskedPairs)
	c.report.MaskedPairs = append(c.report.MaskedPairs, MaskedPair{
		Lane: lane, Seq: new(of.a.rec.Seq), ReplaySeq: new(of.b.rec.Seq), Place: h.place, Mask: h.mask,
		Recorded: bounded(h.was), Replay: bounded(h.now), Records: 1, Settled: settled,
	})
}

// unmask reports a place as a divergence. What was said of an earlier record is not said again of each that repeats it.
func (c *maskings) unmask(lane string, of pair, at int, h *hidden) {
	key := pairKey{h.place, h.mask, h.was, h.now}
	if c.told[key] {
		return
	}
	c.told[key] = true
	f := finding{
		category: MaskedValue, title: h.place + " changed, which the mask " + h.mask + " does not excuse",
		values: [2]any{h.was, h.now},
	}
	div := divergenceOf(&f, of.a.rec, of.b.rec)
	div.Lane = lane
	div = div.complete(&f, c.o.Sides, subjectOf(of.a.rec.Kind))
	ev := evidenceOf(&div, &f)
	ev.news = []string{h.now}
	c.place(placed{at: at, Divergence: div, rec: of.b.rec, evidence: ev})
}
