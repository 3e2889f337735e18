package fidelity

import "github.com/tapedeck-dev/tapedeck/tape"

// CompareAligned compares two bare tapes as Compare does, but aligns their records on what they are about instead of by
// position, so that one inserted record is one divergence. It holds the records of both tapes. An outcome has no positions:
// Outcome is the same as with Compare.
func CompareAligned(mode Mode, recorded, replay Records) (*Report, error) {
	if mode == Outcome || int(mode) >= len(modeNames) {
		return Compare(mode, recorded, replay)
	}
	r := newReport(mode)
	user := alignment{differ: differ{exact: mode != Semantic}}
	var runtime alignment
	err := together(recorded, replay, func(s Side, rec *tape.Record) {
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
	r.add(user.divergences()...)
	r.add(runtime.divergences()...)
	r.rate()
	return r, nil
}

// alignment is one sequence of records of both sides.
type alignment struct {
	differ
	sides [2][]entry
}

func (al *alignment) add(s Side, rec *tape.Record) {
	al.sides[s] = append(al.sides[s], entry{rec: rec, id: al.identity(rec.Kind)})
}

func (al *alignment) divergences() []Divergence {
	pairs, _ := pairUp(al.sides[Recorded], al.sides[Replay], &pairRules{likely: likely})
	var out []Divergence
	for _, p := range pairs {
		switch {
		case p.b == nil:
			out = append(out, missing(Recorded, p.a.rec))
		case p.a == nil:
			out = append(out, missing(Replay, p.b.rec))
		default:
			out = append(out, al.pair(p.a.rec, p.b.rec)...)
		}
	}
	return out
}
