package fidelity

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// CompareAligned compares two bare tapes as Compare does, but aligns their records on what they are about instead of by
// position, so that one inserted record is one divergence, and one that stands elsewhere is one too (Moved). It holds the
// records of both tapes. An outcome has no positions: Outcome is the same as with Compare.
func CompareAligned(mode Mode, recorded, replay Records) (*Report, error) {
	return CompareTapes(mode, recorded, replay, &TapeOptions{Aligned: true})
}

func compareAligned(mode Mode, recorded, replay Records, o *TapeOptions) (*Report, error) {
	r := newReport(mode)
	r.sides = o.Sides
	user := alignment{comparer: comparer{differ: differ{exact: mode != Semantic}}}
	var runtime alignment
	for _, al := range []*alignment{&user, &runtime} {
		al.o = LaneOptions{Payload: o.Payload, Sides: o.Sides}
		al.sides = o.Sides
	}
	err := together(o.Sides, recorded, replay, func(s Side, rec *tape.Record) {
		r.count(s)
		if mode != PhaseAware || rec.Phase != tape.PhaseRuntimeFinalize {
			user.add(s, rec)
		} else if _, clock := rec.Kind.(*tape.ClockRead); !clock {
			runtime.add(s, rec)
		}
	})
	if err != nil {
		return nil, err
	}
	user.compare(r)
	runtime.compare(r)
	r.rate()
	return r, nil
}

// alignment is one sequence of records of both sides.
type alignment struct {
	comparer
	entries [2][]entry // by side
}

func (al *alignment) add(s Side, rec *tape.Record) {
	al.entries[s] = append(al.entries[s], entry{rec: rec, id: al.identity(rec.Kind)})
}

func (al *alignment) compare(r *Report) {
	pairs, _ := pairUp(al.entries[Recorded], al.entries[Replay], &pairRules{likely: []func(tape.Kind) string{likely}, reorder: true})
	for _, p := range pairs {
		switch {
		case p.b == nil:
			r.addMissing(Recorded, p.a.rec)
		case p.a == nil:
			r.addMissing(Replay, p.b.rec)
		default:
			if p.moved {
				r.add(movedOf(p.a.rec, p.b.rec, r.sides))
			}
			al.pair(r, p.a.rec, p.b.rec)
		}
	}
}

// movedOf is the divergence of a record that came at another place.
func movedOf(a, b *tape.Record, names sides) Divergence {
	return Divergence{
		Seq: new(a.Seq), Category: RecordMoved, ReplaySeq: new(b.Seq), Recorded: describe(a.Kind), Replay: describe(b.Kind),
		Message: fmt.Sprintf("came in another place: %s seq %d, %s seq %d: %s", names.of(Recorded), a.Seq, names.of(Replay), b.Seq,
			describe(a.Kind)),
	}
}
