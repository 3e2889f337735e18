package fidelity

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TapeOptions are what CompareTapes needs beside two tapes. nil and the zero value work.
type TapeOptions struct {
	Aligned bool // as CompareAligned does
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

// CompareTapes is Compare or CompareAligned, as the options say.
func CompareTapes(mode Mode, recorded, replay Records, o *TapeOptions) (*Report, error) {
	if int(mode) >= len(modeNames) {
		return nil, fmt.Errorf("unknown mode %d", mode)
	}
	if o == nil {
		o = new(TapeOptions)
	}
	switch {
	case mode == Outcome:
		return compareOutcome(recorded, replay, o.Sides)
	case o.Aligned:
		return compareAligned(mode, recorded, replay, o)
	}
	r := newReport(mode)
	r.names = o.Sides
	p := newPositions(mode, o)
	err := readBoth(o.Sides, recorded, replay, func(s Side, rec *tape.Record) {
		r.count(s)
		p.put(s, rec)
	})
	if err != nil {
		return nil, err
	}
	p.finish(r)
	r.rate()
	return r, nil
}

// positions pairs the records of two tapes by position, in PhaseAware those of each phase among themselves.
type positions struct {
	byPhase bool
	user    position // every record, unless byPhase
	runtime position
}

func newPositions(mode Mode, o *TapeOptions) *positions {
	p := &positions{byPhase: mode == PhaseAware}
	for _, q := range []*position{&p.user, &p.runtime} {
		q.o = LaneOptions{Payload: o.Payload, Sides: o.Sides}
		q.names, q.found.names = o.Sides, o.Sides
	}
	p.user.exact = mode == ByteIdentical || mode == PhaseAware
	return p
}

func (p *positions) put(s Side, rec *tape.Record) {
	if !p.byPhase || rec.Phase != tape.PhaseRuntimeFinalize {
		p.user.put(s, rec)
	} else if _, clock := rec.Kind.(*tape.ClockRead); !clock {
		p.runtime.put(s, rec)
	}
}

// finish reports what differs, and what stayed alone.
func (p *positions) finish(r *Report) {
	for _, q := range []*position{&p.user, &p.runtime} {
		q.finish()
		r.add(q.found.Divergences...)
		r.Omitted += q.found.Omitted
	}
}

// position pairs one sequence of records.
type position struct {
	comparer
	waiting [2][]*tape.Record // by side; at least one is empty
	found   Report            // its list alone
}

func (q *position) put(s Side, rec *tape.Record) {
	other := q.waiting[1-s]
	if len(other) == 0 {
		q.waiting[s] = append(q.waiting[s], rec)
		return
	}
	q.waiting[1-s] = other[1:]
	a, b := rec, other[0]
	if s == Replay {
		a, b = b, a
	}
	q.pair(&q.found, a, b)
}

// comparer compares and explains two records that stand beside each other.
type comparer struct {
	differ
	explainer
}

// pair lists a divergence for every field in which two records differ, or counts them where the list is full. The bytes behind
// them are shown where they can be had.
func (c *comparer) pair(r *Report, a, b *tape.Record) {
	if c.silent = r.full(); c.silent {
		c.count = 0
		c.record(a, b)
		r.Omitted += c.count
		return
	}
	for _, f := range c.record(a, b) {
		div := divergenceOf(&f, a, b)
		if c.o.Payload != nil || inRecord(f.was) && inRecord(f.now) {
			c.explain(&div, &f)
		}
		r.add(div.complete(&f, c.names, subjectOf(a.Kind)))
	}
}

// inRecord reports whether a payload's bytes stand in its record.
func inRecord(p *tape.Payload) bool { return p != nil && p.Inline }

// divergenceOf is a divergence about one field of two records.
func divergenceOf(f *finding, a, b *tape.Record) Divergence {
	return Divergence{
		Seq: new(a.Seq), Category: f.category, Message: f.title, // a copy: a pointer would hold the record
		Recorded: describe(a.Kind), Replay: describe(b.Kind), ReplaySeq: new(b.Seq),
	}
}

// complete puts the two values into the message where no change tells more, and what it is about.
func (d Divergence) complete(f *finding, names sideNames, about string) Divergence {
	if about != "" && f.category != KindMismatch {
		about = " (" + about + ")"
	} else {
		about = ""
	}
	d.title = d.Message + about
	if f.message != nil && len(d.Changes) > 0 {
		d.tellMessage(f.part)
		return d
	}
	if len(d.Changes) == 0 {
		d.oldValue, d.newValue = f.values[Recorded], f.values[Replay]
		d.Message += names.versus(d.oldValue, d.newValue)
	}
	d.Message += about
	return d
}

func (q *position) finish() {
	for s, recs := range q.waiting {
		for _, rec := range recs {
			q.found.addMissing(Side(s), rec)
		}
	}
}

// missing is the divergence of a record that stands on side s alone.
func missing(s Side, rec *tape.Record, names sideNames) Divergence {
	what := describe(rec.Kind)
	d := Divergence{Seq: new(rec.Seq), Category: MissingInReplay, Message: names.alone(s) + ": " + what}
	if s == Replay {
		d.Category, d.Replay, d.ReplaySeq = MissingInRecorded, what, new(rec.Seq)
	} else {
		d.Recorded = what
	}
	return d
}

// CompareAligned compares two bare tapes as Compare does, but aligns their records on what they are about instead of by
// position, so that one inserted record is one divergence, and one that stands elsewhere is one too (Moved). It holds the
// records of both tapes. An outcome has no positions: Outcome is the same as with Compare.
func CompareAligned(mode Mode, recorded, replay Records) (*Report, error) {
	return CompareTapes(mode, recorded, replay, &TapeOptions{Aligned: true})
}

func compareAligned(mode Mode, recorded, replay Records, o *TapeOptions) (*Report, error) {
	r := newReport(mode)
	r.names = o.Sides
	user := alignment{comparer: comparer{differ: differ{exact: mode != Semantic}}}
	var runtime alignment
	for _, al := range []*alignment{&user, &runtime} {
		al.o = LaneOptions{Payload: o.Payload, Sides: o.Sides}
		al.names = o.Sides
	}
	err := readBoth(o.Sides, recorded, replay, func(s Side, rec *tape.Record) {
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
	al.entries[s] = append(al.entries[s], entry{rec: rec, id: identity(&al.differ, rec.Kind)})
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
				r.add(movedOf(p.a.rec, p.b.rec, r.names))
			}
			al.pair(r, p.a.rec, p.b.rec)
		}
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
