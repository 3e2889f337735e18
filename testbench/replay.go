package testbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
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
func (r *recorded) timeOf(b *Bench, o *clock.Options) {
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
func (b *Bench) clockTaped(source string) (int64, error) {
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
