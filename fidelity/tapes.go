package fidelity

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Mode says what must match.
type Mode uint8

// The modes.
const (
	// Semantic ignores phase, times, the duration of a process, the latency of MCP and the length of a file. Every hash,
	// digest, clock value and sleep counts. It is the default.
	Semantic Mode = iota
	// ByteIdentical compares every field of every record.
	ByteIdentical
	// Outcome compares what can be seen from outside: the files written and deleted, the exit code of the last process,
	// the number of model calls.
	Outcome
	// PhaseAware compares what the program did as ByteIdentical does, and what the runtime did after it as Semantic does,
	// without its clock reads.
	PhaseAware
)

// modeNames holds each mode's names, the first as people write it and the second as a report does.
var modeNames = [...][]string{
	Semantic:      {"semantic", "semantic"},
	ByteIdentical: {"byte-identical", "byte_identical", "byte"},
	Outcome:       {"outcome", "outcome"},
	PhaseAware:    {"phase-aware", "phase_aware", "byte-user-semantic-runtime"},
}

// ParseMode reads the name of a mode in any accepted spelling: byte-identical (byte, byte_identical), semantic, outcome,
// phase-aware (phase_aware, byte-user-semantic-runtime). The error for any other name lists the four.
func ParseMode(name string) (Mode, error) {
	var known []string
	for m, names := range modeNames {
		for _, n := range names {
			if n == name {
				return Mode(m), nil
			}
		}
		known = append(known, names[0])
	}
	return 0, fmt.Errorf("unknown mode %q: want one of %s", name, strings.Join(known, ", "))
}

// String returns the name as people write it: byte-identical, semantic, outcome, phase-aware.
func (m Mode) String() string { return m.name(0) }

// Snake returns the name as a report holds it: byte_identical, semantic, outcome, phase_aware.
func (m Mode) Snake() string { return m.name(1) }

func (m Mode) name(i int) string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("mode(%d)", uint8(m))
	}
	return modeNames[m][i]
}

// Records is what a tape yields: its records in order, or an error that ends it. Every record must stay as it is after the
// next one was yielded.
type Records = iter.Seq2[*tape.Record, error]

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

// batchSize is how many records of a side are handed over at once; aheadBatches how many such are read ahead.
const (
	batchSize    = 128
	aheadBatches = 4
)

// A batch is some records of a tape, and what ended it.
type batch struct {
	records []*tape.Record
	err     error
}

// readBoth reads two tapes side by side, each in a goroutine of its own, and calls fn for every record in its own goroutine, a batch of
// each side in turns. Both have ended when it returns. names are what an error calls them.
func readBoth(names sideNames, recorded, replay Records, fn func(Side, *tape.Record)) error {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	defer wg.Wait() // after stop was closed
	defer close(stop)
	var in [2]chan batch // nil at its end
	for s, records := range [2]Records{recorded, replay} {
		ahead := make(chan batch, aheadBatches)
		in[s] = ahead
		wg.Go(func() { readAhead(records, ahead, stop) })
	}
	for in[Recorded] != nil || in[Replay] != nil {
		for s := range in {
			if in[s] == nil {
				continue
			}
			b, more := <-in[s]
			if !more {
				in[s] = nil
			}
			for _, rec := range b.records {
				fn(Side(s), rec)
			}
			if b.err != nil {
				return fmt.Errorf("%s: %w", names.tape(Side(s)), b.err)
			}
		}
	}
	return nil
}

// atOnce does do for both sides, one of them in a goroutine of its own, and returns when both have ended.
func atOnce(do func(Side)) {
	var other sync.WaitGroup
	other.Go(func() { do(Replay) })
	do(Recorded)
	other.Wait()
}

// readAhead reads a tape until its end, its error or stop, and closes out.
func readAhead(records Records, out chan<- batch, stop <-chan struct{}) {
	defer close(out)
	b := batch{records: make([]*tape.Record, 0, batchSize)}
	send := func() bool {
		select {
		case out <- b:
		case <-stop:
			return false
		}
		b.records = make([]*tape.Record, 0, batchSize)
		return true
	}
	for rec, err := range records {
		if b.err = err; err != nil {
			break
		}
		if b.records = append(b.records, rec); len(b.records) == batchSize && !send() {
			return
		}
	}
	send()
}

// sideNames are what two tapes are called in what is told of them: by default what was recorded and its replay.
type sideNames [2]string

func (n sideNames) named() bool { return n != sideNames{} }

// of is the name of a side.
func (n sideNames) of(s Side) string {
	if n.named() {
		return n[s]
	}
	return s.String()
}

// tape is what the tape of a side is called.
func (n sideNames) tape(s Side) string {
	if n.named() {
		return n[s]
	}
	return s.String() + " tape"
}

// versus is what a message says of two values.
func (n sideNames) versus(was, now string) string {
	return ": " + n.of(Recorded) + " " + was + ", " + n.of(Replay) + " " + now
}

// alone says that one side has a record and the other has not.
func (n sideNames) alone(s Side) string {
	switch {
	case n.named():
		return "in " + n[s] + " and not in " + n[1-s]
	case s == Recorded:
		return "recorded and not in the replay"
	}
	return "in the replay and not recorded"
}

// counts says how many records the sides have.
func (n sideNames) counts(was, now int) string {
	if n.named() {
		return fmt.Sprintf("%s in %s, %d in %s", counted(was, "record"), n[Recorded], now, n[Replay])
	}
	return fmt.Sprintf("%s recorded, %d on replay", counted(was, "record"), now)
}

// Uncovered says in one line what was not covered; "" for nothing. First comes what is particular to these recordings, some of it where
// it is much, then what usual has a short form for: what all of them leave out, and no reader looks for twice.
func Uncovered(gaps []string, usual map[string]string) string {
	var own, always []string
	for _, g := range gaps {
		if short, ok := usual[g]; ok {
			always = append(always, short)
		} else {
			own = append(own, g)
		}
	}
	const most = 8
	if more := len(own) - most; more > 0 {
		own = append(own[:most:most], fmt.Sprintf("%d more (tapedeck show REC --coverage)", more))
	}
	line := strings.Join(own, ", ")
	if len(always) == 0 {
		return line
	}
	if line != "" {
		line += "; and "
	}
	return line + "as always " + strings.Join(always, ", ") + " (tapedeck show REC --coverage)"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

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
	var entries [2][]*entry
	for s, recs := range q.waiting {
		all := make([]entry, len(recs))
		for i, rec := range recs {
			all[i] = entry{rec: rec, id: identity(&q.differ, rec.Kind)}
			entries[s] = append(entries[s], &all[i])
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
