package clock

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Epoch is where a paused clock begins when Options.Start is zero: 2026-01-01T00:00:00Z.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ErrOverflow is returned by a wait that would lead past the end of a paused clock, 292 years after its start.
var ErrOverflow = errors.New("wait is past the end of the clock, 292 years after its start")

// The sources of a reading, as a tape names them.
const (
	SourceWall      = "wall"
	SourceMonotonic = "monotonic"
)

// Options say which clock it is. Nil and zero work: a paused one.
type Options struct {
	// Start is the time at which the clock begins, taken to the ms. Zero is Epoch of a paused clock, the host's time of a real one.
	Start time.Time
	// Real is the host's clock. False is a paused one.
	Real bool
	// Reads answers readings from a tape, in ms: Unix time of SourceWall, since the start of SourceMonotonic. Nil is the clock's
	// own time, which is also what Now and Monotonic give where Reads fails.
	Reads func(source string) (ms int64, err error)
	// Idle is called before somebody really waits: on a real clock, or in Outside. A tape is flushed there, so that a run that is
	// killed while it waits leaves what came before. Nil is nothing.
	Idle func()
}

// A Clock is for any number of goroutines.
type Clock struct {
	start time.Time // whole ms, UTC
	reads func(source string) (int64, error)
	idle  func()
	real  bool
	base  time.Time // of a real clock: the host's at New, with its monotonic part
	rec   *tape.Recorder

	since atomic.Int64 // ns since start of a paused clock; written under mu

	mu     sync.Mutex
	timers queue  // of a paused clock
	order  uint64 // of the timer armed last
}

// New returns a clock. It starts no goroutine and needs no end.
func New(o *Options) *Clock {
	c := &Clock{}
	if o != nil {
		c.start, c.real, c.reads, c.idle = o.Start, o.Real, o.Reads, o.Idle
	}
	if c.real {
		c.base = time.Now()
	}
	if c.idle == nil {
		c.idle = func() {}
	}
	switch {
	case c.start.IsZero() && c.real:
		c.start = c.base
	case c.start.IsZero():
		c.start = Epoch
	}
	c.start = time.UnixMilli(c.start.UnixMilli()).UTC()
	return c
}

// Record puts every reading and sleep from now on onto rec. It is called before the clock's first use; nil records nothing.
func (c *Clock) Record(rec *tape.Recorder) { c.rec = rec }

// Paused says whether time stands still while nobody waits.
func (c *Clock) Paused() bool { return !c.real }

// Start returns the time at which the clock began, in UTC and whole ms.
func (c *Clock) Start() time.Time { return c.start }

// elapsed is the time since the start.
func (c *Clock) elapsed() time.Duration {
	if c.real {
		return time.Since(c.base)
	}
	return time.Duration(c.since.Load())
}

// Stamp returns Unix ms and ms since the start and records nothing: it is tape.RecorderOptions.Now, and what a layer that is not
// the program asks.
func (c *Clock) Stamp() (wallMS, monotonicMS int64) {
	mono := c.elapsed().Milliseconds()
	return c.start.UnixMilli() + mono, mono
}

// Now is ReadWall without its error: the recorder keeps its own, and whoever gave Options.Reads knows what that failed with.
func (c *Clock) Now() time.Time {
	t, _ := c.ReadWall()
	return t
}

// Monotonic is ReadMonotonic without its error.
func (c *Clock) Monotonic() time.Duration {
	d, _ := c.ReadMonotonic()
	return d
}

// ReadWall reads the clock, in UTC and whole ms, which is a clock_read of the source wall. The error is that of Options.Reads, and
// then the time is the clock's own and on no tape, or the recorder's.
func (c *Clock) ReadWall() (time.Time, error) {
	wall, _ := c.Stamp()
	ms, err := c.read(SourceWall, wall)
	return time.UnixMilli(ms).UTC(), err
}

// ReadMonotonic reads the time since the start, in whole ms, which is a clock_read of the source monotonic. Errors are as of
// ReadWall.
func (c *Clock) ReadMonotonic() (time.Duration, error) {
	_, mono := c.Stamp()
	ms, err := c.read(SourceMonotonic, mono)
	return time.Duration(ms) * time.Millisecond, err
}

func (c *Clock) read(source string, own int64) (int64, error) {
	if c.reads != nil {
		ms, err := c.reads(source)
		if err != nil {
			return own, err
		}
		own = ms
	}
	return own, c.noteRead(source, own)
}

// noteRead and noteSleep are the hooks: a nil recorder costs a comparison.
func (c *Clock) noteRead(source string, ms int64) error {
	if c.rec != nil {
		return c.rec.Record(&tape.ClockRead{Source: source, ValueMS: ms})
	}
	return nil
}

func (c *Clock) noteSleep(d time.Duration) error {
	if c.rec != nil {
		return c.rec.Record(&tape.ClockSleep{DurationMS: d.Milliseconds()})
	}
	return nil
}
