package fidelity

import (
	"fmt"
	"iter"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Records is what a tape yields: its records in order, or an error that ends it. Every record must stay as it is after the
// next one was yielded.
type Records = iter.Seq2[*tape.Record, error]

// Compare compares two bare tapes by position and says where the replay differs from what was recorded. It reads both side
// by side and holds no more than the records that wait for their counterpart: one, or in PhaseAware as many as one side's
// phase lags behind. The error is that of the tape that could not be read, with its side named; there is no report then.
func Compare(mode Mode, recorded, replay Records) (*Report, error) {
	if int(mode) >= len(modeNames) {
		return nil, fmt.Errorf("unknown mode %d", mode)
	}
	if mode == Outcome {
		return compareOutcome(recorded, replay)
	}
	r := newReport(mode)
	p := newPositions(mode)
	err := together(recorded, replay, func(s Side, rec *tape.Record) {
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

// A Side says which of two tapes a thing stands on.
type Side uint8

// The sides.
const (
	Recorded Side = iota
	Replay
)

// String returns "recorded" or "replay".
func (s Side) String() string {
	if s == Replay {
		return "replay"
	}
	return "recorded"
}

func (r *Report) count(s Side) {
	if s == Recorded {
		r.RecordedRecords++
	} else {
		r.ReplayRecords++
	}
}

// together reads two tapes in turns and calls fn for every record.
func together(recorded, replay Records, fn func(Side, *tape.Record)) error {
	nextA, stopA := iter.Pull2(recorded)
	defer stopA()
	nextB, stopB := iter.Pull2(replay)
	defer stopB()
	for moreA, moreB := true, true; moreA || moreB; {
		var err error
		if moreA, err = pull(Recorded, nextA, fn); err != nil {
			return err
		}
		if moreB, err = pull(Replay, nextB, fn); err != nil {
			return err
		}
	}
	return nil
}

// pull reads one record of a side. A side that has ended may be pulled again.
func pull(s Side, next func() (*tape.Record, error, bool), fn func(Side, *tape.Record)) (more bool, err error) {
	rec, err, more := next()
	switch {
	case !more:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s tape: %w", s, err)
	}
	fn(s, rec)
	return true, nil
}

// positions pairs the records of two tapes by position, in PhaseAware those of each phase among themselves.
type positions struct {
	byPhase bool
	user    position // every record, unless byPhase
	runtime position
}

func newPositions(mode Mode) *positions {
	p := &positions{byPhase: mode == PhaseAware}
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
	differ
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
	q.found.add(q.pair(a, b)...)
}

// pair returns a divergence for every field in which two records differ.
func (d *differ) pair(a, b *tape.Record) []Divergence {
	var out []Divergence
	for _, f := range d.record(a, b) {
		out = append(out, Divergence{Seq: &a.Seq, Category: f.category, Message: f.message, Cause: f.inlineCause()})
	}
	return out
}

func (q *position) finish() {
	for s, recs := range q.waiting {
		for _, rec := range recs {
			q.found.add(missing(Side(s), rec))
		}
	}
}

// missing is the divergence of a record that stands on side s alone.
func missing(s Side, rec *tape.Record) Divergence {
	d := Divergence{Seq: &rec.Seq, Category: MissingInReplay}
	d.Message = "recorded and not in the replay: " + describe(rec.Kind)
	if s == Replay {
		d.Category = MissingInRecorded
		d.Message = "in the replay and not recorded: " + describe(rec.Kind)
	}
	return d
}

// inlineCause shows how two payloads that both stand in their records differ; empty where they do not.
func (f *finding) inlineCause() string {
	if f.was == nil || f.now == nil || !f.was.Inline || !f.now.Inline {
		return ""
	}
	return Summary(DiffJSON([]byte(f.was.Text), []byte(f.now.Text)), causeChanges)
}

// causeChanges is how many changes the cause of one divergence shows.
const causeChanges = 5
