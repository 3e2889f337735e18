package testbench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Replay begins a run whose every axis answers from the tape at tapePath, or that of a recording. Nothing is asked for anywhere
// else. Arguments, the environment and the time at which the clock starts are those of the tape; of c, which may be nil, count Name,
// Emit, EmitTo, Secrets, Unused, Files.Read, and OwnReadings with its Seed, so that the Config of the run itself will do. Verdict compares the two.
//
// A tape of ours answers by what is asked: equal requests in recorded order, others as they come. One of another producer answers each
// kind in recorded order, whatever is asked, and the comparison tells. A run on a real clock is replayed on one that does not wait:
// readings come from the tape.
//
// The first call that the tape does not answer fails, and with it every call after it: what came then would not be the run that was
// recorded.
func Replay(tapePath string, c *Config) (*Bench, error) { return replay(tapePath, c, nil) }

func replay(tapePath string, c *Config, told func(error)) (*Bench, error) {
	from, err := readTape(tapePath)
	if err != nil {
		return nil, fmt.Errorf("testbench: the tape to replay: %w", err)
	}
	if err := from.whole(); err != nil {
		return nil, fmt.Errorf("testbench: the tape to replay: %w", err)
	}
	from.index()
	var conf Config
	if c != nil {
		conf = Config{Name: c.Name, Emit: c.Emit, EmitTo: c.EmitTo, Secrets: c.Secrets, Unused: c.Unused,
			OwnReadings: c.OwnReadings, Seed: c.Seed, Files: Files{Read: c.Files.Read}}
	}
	if conf.Emit != "" && placeOf(conf.Emit).is(placeOf(from.path)) {
		return nil, fmt.Errorf("testbench: a replay cannot write its tape over %s, which it answers from: give another path", from.path)
	}
	conf.Keep, conf.Args = true, from.header.Argv
	if conf.Name == "" && from.header.ScriptPath != nil {
		conf.Name = *from.header.ScriptPath
	}
	return open(&conf, from, told)
}

// timeOf sets the clock of a replay: one that stands still, from where the recorded one began.
func (b *core) timeOf(o *clock.Options) {
	r := b.from
	o.Real = false
	if r.foreign || r.header.StartedAtUnixMS == nil {
		o.Reads = b.clockTaped
	}
	if ms := r.header.StartedAtUnixMS; ms != nil {
		o.Start = time.UnixMilli(*ms)
		return
	}
	if len(r.records) > 0 {
		first := r.records[0]
		o.Start = time.UnixMilli(first.VirtualTimeMS - first.MonotonicMS)
	}
}

// clockTaped answers a reading from the tape: of a real clock, or of another producer's, where time may pass in virtual_time_ms alone.
// A clock that stood still has an answer to a further reading too, its own.
func (b *core) clockTaped(source string) (int64, error) {
	if err := b.watch.gate(); err != nil {
		return 0, err
	}
	paused := b.from.header.StartedAtUnixMS != nil
	if rec, ms := b.from.nextReading(source); rec != nil {
		if wall, _ := b.clock.Stamp(); paused && rec.VirtualTimeMS > wall {
			return ms, b.clock.Wait(context.Background(), time.Duration(rec.VirtualTimeMS-wall)*time.Millisecond)
		}
		return ms, nil
	}
	if paused || b.conf.OwnReadings {
		return b.ownTime(source), nil
	}
	err := &RefusedError{Axis: "clock", Asked: "a further reading of the " + source + " clock is not on the tape, which was made on a real one",
		Next: "record the run again, or undo what reads it once more"}
	b.watch.refuse(err, func() tape.Kind { return &tape.ClockRead{Source: source} })
	return 0, err
}

// Verdict ends a replay and compares it with the tape that it answered from. After a call that the tape does not answer nothing is
// compared: the record that stands there is compared with what was asked in its place, so the report has the fields that differ; the
// call is in the report's Refused too. The error is that b is no replay, that of Close, or that of a tape.
func (b *Bench) Verdict(mode fidelity.Mode) (*fidelity.Report, error) { return b.verdict(mode, false) }

// AlignedVerdict is Verdict with the records aligned, so that one that was inserted or left out reads as one divergence, and not as
// one in every record behind it.
func (b *Bench) AlignedVerdict(mode fidelity.Mode) (*fidelity.Report, error) {
	return b.verdict(mode, true)
}

func (b *Bench) verdict(mode fidelity.Mode, aligned bool) (*fidelity.Report, error) {
	if b.from == nil {
		return nil, errors.New("testbench: a verdict is of a replay, and this run answered from no tape: use Replay, or Compare")
	}
	if err := b.Close(); err != nil {
		return nil, err
	}
	if err := b.watch.unread(); err != nil {
		return nil, fmt.Errorf("testbench: the tape %s cannot be compared: %w", b.from.path, err)
	}
	_, records, err := b.tape()
	if err != nil {
		return nil, err
	}
	v := verdict{mode: mode, recorded: b.from.records, replayed: records}
	v.cut(b)
	recorded, replayed, err := v.alike(b.from)
	if err != nil {
		return nil, err
	}
	report, err := fidelity.CompareTapes(mode, recorded, replayed, &fidelity.TapeOptions{
		Payload: payloadsOf(b.from.store, b.out.store), Aligned: aligned,
	})
	if err != nil {
		return nil, err
	}
	v.tell(report)
	report.Notes = append(report.Notes, b.from.ownNotes(b.conf.Seed)...)
	report.NotCompared = append(report.NotCompared, b.from.lost()...)
	if b.from.torn {
		report.NotCompared = append(report.NotCompared,
			fmt.Sprintf("the last line of %s is torn: the run that wrote it was killed, and did more than it holds", b.from.path))
	}
	return report, nil
}

// A recorded is a tape that was read: what a replay answers from, and what a run is compared with.
type recorded struct {
	path    string
	header  *tape.Header
	records []*tape.Record
	store   cas.Store
	foreign bool // written by another producer: it answers each kind in recorded order
	bare    bool // without the keys that ours alone have, whoever wrote it
	torn    bool // its last line was cut, as a killed run leaves it
	env     envTape

	mu     sync.Mutex // guards what follows
	own    own
	random []*tape.RandomRead
	inputs map[string][]*tape.FileRead // by path
	clock  map[string][]*tape.Record   // readings by source
}

// readTape reads the tape at path, or that of a recording. A torn last line, which a killed run leaves, is left out.
func readTape(path string) (*recorded, error) {
	path = TapePath(path)
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &recorded{path: path, header: f.Header(), store: f.Store}
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		r.records = append(r.records, rec)
	}
	r.torn = f.Torn()
	r.foreign = !strings.HasPrefix(r.header.Producer, producer)
	r.bare = r.foreign || isBare(r.records)
	return r, nil
}

// index sorts out what this package itself answers.
func (r *recorded) index() {
	r.env = envTape{reads: make(map[string][]*tape.Payload), foreign: r.foreign}
	r.clock = make(map[string][]*tape.Record)
	r.inputs = make(map[string][]*tape.FileRead)
	for _, rec := range r.records {
		switch k := rec.Kind.(type) {
		case *tape.EnvRead:
			r.env.add(k)
		case *tape.RandomRead:
			r.random = append(r.random, k)
		case *tape.FileRead:
			r.inputs[k.Path] = append(r.inputs[k.Path], k)
		case *tape.ClockRead:
			r.clock[k.Source] = append(r.clock[k.Source], rec)
		}
	}
}

// all yields the records, as the axes take them.
func (r *recorded) all() iter.Seq2[*tape.Record, error] { return each(r.records) }

func each(records []*tape.Record) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// payloadsOf is fidelity.TapeOptions.Payload of two stores.
func payloadsOf(recorded, replay cas.Store) func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
	return func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
		if s == fidelity.Recorded {
			return p.Bytes(recorded)
		}
		return p.Bytes(replay)
	}
}

// own is what a replay of Config.OwnReadings answered by itself.
type own struct {
	random, clock int              // readings
	last          map[string]int64 // what each source of a real clock gave last, which none goes back behind
}

// ownNotes are for the report.
func (r *recorded) ownNotes(seed uint64) (notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.own.random; n > 0 {
		notes = append(notes, fmt.Sprintf("not on the tape, and answered from seed %d: %s", seed, counted(n, "reading of random numbers", "readings of random numbers")))
	}
	if n := r.own.clock; n > 0 {
		notes = append(notes, fmt.Sprintf("not on the tape, and answered from a clock that stands still: %s", counted(n, "reading of the clock", "readings of the clock")))
	}
	return notes
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// nextReading takes the next reading of a source; nil where all were given.
func (r *recorded) nextReading(source string) (*tape.Record, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.clock[source]
	if len(queue) == 0 {
		return nil, 0
	}
	r.clock[source] = queue[1:]
	ms := queue[0].Kind.(*tape.ClockRead).ValueMS // which is all that index puts there
	r.own.note(source, ms)
	return queue[0], ms
}

func (o *own) note(source string, ms int64) {
	if o.last == nil {
		o.last = make(map[string]int64)
	}
	o.last[source] = max(o.last[source], ms)
}

// ownTime is a reading of the replay's own clock, where the tape has none.
func (b *core) ownTime(source string) int64 {
	wall, ms := b.clock.Stamp()
	if source == clock.SourceWall {
		ms = wall
	}
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	b.from.own.clock++
	b.from.own.note(source, ms)
	return b.from.own.last[source]
}

// randomTaped fills p with what the tape has for the next reading. False: it has nothing, and the replay may draw by itself.
func (b *core) randomTaped(p []byte) (bool, error) {
	if err := b.watch.gate(); err != nil {
		return false, err
	}
	k, nearest := b.from.nextRandom(int64(len(p)), b.conf.OwnReadings)
	switch {
	case k == nil && b.conf.OwnReadings:
		return false, nil
	case k == nil:
		err := &RefusedError{Axis: "random", Asked: fmt.Sprintf("a reading of %d bytes is not what comes next on the tape", len(p)),
			Nearest: nearest, Next: "record the run again, or undo what changed the reading"}
		b.watch.refuse(err, func() tape.Kind { return &tape.RandomRead{Length: int64(len(p))} })
		return false, err
	case k.Payload == nil:
		return false, fmt.Errorf("testbench: random: the tape %s does not hold the bytes of this reading", b.from.path)
	}
	got, err := k.Payload.Bytes(b.from.store)
	if err != nil {
		return false, b.watch.see(fmt.Errorf("testbench: random: the tape %s: %w", b.from.path, err), nil)
	}
	if len(got) != len(p) {
		return false, fmt.Errorf("testbench: random: the tape %s holds %d bytes for a reading of %d", b.from.path, len(got), len(p))
	}
	copy(p, got)
	return true, nil
}

// nextRandom takes the next reading, which is to be of n bytes; nil, and what is nearest, where it is not. Of a replay that may draw by
// itself the reading is counted then, and one without its bytes is none.
func (r *recorded) nextRandom(n int64, own bool) (*tape.RandomRead, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var k *tape.RandomRead
	nearest := "all that were recorded have been given"
	if len(r.random) > 0 {
		k = r.random[0]
		nearest = fmt.Sprintf("the next one that was recorded has %d bytes", k.Length)
	}
	fits := k != nil && (k.Length == n || r.foreign && !own)
	if !fits || own && k.Payload == nil {
		if own {
			r.own.random++
		}
		return nil, nearest
	}
	r.random = r.random[1:]
	return k, ""
}

// inputTaped is the next reading of path that the tape has.
func (b *core) inputTaped(path string) ([]byte, error) {
	b.from.mu.Lock()
	queue, known := b.from.inputs[path]
	if len(queue) > 0 {
		b.from.inputs[path] = queue[1:]
	}
	b.from.mu.Unlock()
	if len(queue) == 0 {
		asked := path + " was not read when this tape was made"
		if known {
			asked = path + " was not read once more when this tape was made"
		}
		err := &RefusedError{Axis: "files", Asked: asked, Next: "record the run again, or undo what reads it"}
		b.watch.refuse(err, func() tape.Kind { return &tape.FileRead{File: tape.File{Path: path}} })
		return nil, err
	}
	if queue[0].Content == nil {
		return nil, fmt.Errorf("testbench: the tape %s does not hold what was read of %s", b.from.path, path)
	}
	content, err := queue[0].Content.Bytes(b.from.store)
	return content, b.watch.see(err, nil)
}

// isBare reports whether records have the keys alone that every producer of the format writes, where ours would have more: what these
// say cannot be compared then, nor be needed for an answer.
func isBare(records []*tape.Record) bool {
	said := false // anything that ours says more of
	for _, rec := range records {
		switch k := rec.Kind.(type) {
		case *tape.LLMCall:
			if k.RequestPayload != nil {
				return false
			}
		case *tape.FileRead:
			if k.Content != nil {
				return false
			}
		case *tape.FileWrite:
			if k.Content != nil {
				return false
			}
		case *tape.FileDelete:
			if k.Before != nil {
				return false
			}
		default:
			continue
		}
		said = true
	}
	return said
}
