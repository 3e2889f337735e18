package fidelity

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TapeOptions are what CompareTapes needs beside two tapes. nil and the zero value work.
type TapeOptions struct {
	// Aligned has records compare by what they are about instead of by position, so that one inserted record is one divergence, and one that
	// stands elsewhere is one too (Moved). It holds the records of both tapes. An outcome has no positions, and is the same either way.
	Aligned bool
	// Sides are what messages call the two tapes, such as A and B. Empty stands for what was recorded and its replay.
	Sides [2]string
	// Payload returns the bytes of a payload of one side, to explain a divergence with. It is never called to compare. nil
	// explains with what stands in the records.
	Payload func(p *tape.Payload, s Side) ([]byte, error)
}

// Compare compares two bare tapes by position and says where the replay differs from what was recorded. It reads both side
// by side, each in a goroutine of its own, and holds no more than the records that were read ahead and those that wait for
// their counterpart: one, or in PhaseAware as many as one side's phase lags behind. The error is that of the tape that could
// not be read, with its side named; there is no report then.
func Compare(mode Mode, recorded, replay Records) (*Report, error) {
	return CompareTapes(mode, recorded, replay, nil)
}

// CompareTapes is Compare as the options say.
func CompareTapes(mode Mode, recorded, replay Records, o *TapeOptions) (*Report, error) {
	if int(mode) >= len(modeNames) {
		return nil, fmt.Errorf("unknown mode %d", mode)
	}
	if o == nil {
		o = new(TapeOptions)
	}
	if mode == Outcome {
		return compareOutcome(recorded, replay, o.Sides)
	}
	r := newReport(mode)
	r.names = o.Sides
	program, runtime := newSequence(o, mode != Semantic), newSequence(o, false)
	err := readBoth(o.Sides, recorded, replay, func(s Side, rec *tape.Record) {
		r.count(s)
		if mode != PhaseAware || rec.Phase != tape.PhaseRuntimeFinalize {
			program.put(s, rec)
		} else if _, clock := rec.Kind.(*tape.ClockRead); !clock {
			runtime.put(s, rec)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, q := range []*sequence{program, runtime} {
		q.finish()
		r.add(q.found.Divergences...)
		r.Omitted += q.found.Omitted
	}
	r.rate()
	return r, nil
}

// A sequence is the records of both sides that are paired among themselves: all of them, or in PhaseAware those of one phase.
type sequence struct {
	differ
	explainer
	aligned bool
	waiting [2][]*tape.Record // by side; at least one is empty where records pair by position
	found   Report            // its list alone
}

func newSequence(o *TapeOptions, exact bool) *sequence {
	q := &sequence{aligned: o.Aligned, found: Report{names: o.Sides}}
	q.o = LaneOptions{Payload: o.Payload, Sides: o.Sides}
	q.exact, q.names = exact, o.Sides
	return q
}

// put compares a record with the one in its place, where that is there already.
func (q *sequence) put(s Side, rec *tape.Record) {
	other := q.waiting[1-s]
	if q.aligned || len(other) == 0 {
		q.waiting[s] = append(q.waiting[s], rec)
		return
	}
	q.waiting[1-s] = other[1:]
	a, b := rec, other[0]
	if s == Replay {
		a, b = b, a
	}
	q.pair(a, b)
}

// finish reports what stayed alone, and of an aligned sequence all.
func (q *sequence) finish() {
	var entries [2][]entry
	for s, recs := range q.waiting {
		for _, rec := range recs {
			entries[s] = append(entries[s], entry{rec: rec, id: identity(&q.differ, rec.Kind)})
		}
	}
	rules := &pairRules{}
	if q.aligned {
		rules = &pairRules{likely: []func(tape.Kind) string{likely}, reorder: true}
	}
	pairs, _ := pairUp(entries[Recorded], entries[Replay], rules)
	for _, p := range pairs {
		switch {
		case p.b == nil:
			q.found.addMissing(Recorded, p.a.rec)
		case p.a == nil:
			q.found.addMissing(Replay, p.b.rec)
		default:
			if p.moved {
				q.found.add(movedOf(p.a.rec, p.b.rec, q.names))
			}
			q.pair(p.a.rec, p.b.rec)
		}
	}
}

// pair lists a divergence for every field in which two records differ, or counts them where the list is full. The bytes behind
// them are shown where they can be had.
func (q *sequence) pair(a, b *tape.Record) {
	r := &q.found
	for _, f := range q.record(a, b) {
		if r.full() {
			r.Omitted++
			continue
		}
		div := divergenceOf(&f, a, b)
		if q.o.Payload != nil || inRecord(f.was) && inRecord(f.now) {
			q.explain(&div, &f)
		}
		r.add(div.complete(&f, q.names, subjectOf(a.Kind)))
	}
}

// movedOf is the divergence of a record that came at another place.
func movedOf(a, b *tape.Record, names sideNames) Divergence {
	return Divergence{
		Seq: new(a.Seq), Category: RecordMoved, ReplaySeq: new(b.Seq), Recorded: describe(a.Kind), Replay: describe(b.Kind),
		Message: fmt.Sprintf("came in another place: %s seq %d, %s seq %d: %s", names.of(Recorded), a.Seq, names.of(Replay), b.Seq,
			describe(a.Kind)),
	}
}
