package testbench

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
func (b *Bench) ownTime(source string) int64 {
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
func (b *Bench) randomTaped(p []byte) (bool, error) {
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
