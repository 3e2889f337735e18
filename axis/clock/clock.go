package clock

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// Sleep waits for d and then records it, a clock_sleep. One that ctx ends early records how long it was, and returns ctx's error; one
// whose ctx is done before records nothing. Zero and less return at once and record 0.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	d = max(d, 0)
	if err := reason(ctx); err != nil {
		return err
	}
	from := c.elapsed()
	err := c.Wait(ctx, d)
	if errors.Is(err, ErrOverflow) {
		return err
	}
	if err != nil {
		d = min(d, c.elapsed()-from)
	}
	if lost := c.noteSleep(d); err == nil {
		err = lost
	}
	return err
}

// Wait lets d go by and records nothing: the latency of an answer, or a clock that is put forward. Zero and less return at once. The
// error is ctx's (context.DeadlineExceeded where a timeout of this clock ended it) with its cause, or ErrOverflow.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	if err := reason(ctx); err != nil || d <= 0 {
		return err
	}
	now := c.elapsed()
	switch {
	case c.real:
		c.idle()
		return hostWait(ctx, c.claim(ctx), d)
	case d > math.MaxInt64-now:
		return ErrOverflow
	}
	b := c.claim(ctx)
	if b == nil {
		return c.moveAlone(ctx, now+d)
	}
	b.waitTurn(ctx, now+d)
	if c.elapsed() >= now+d {
		return nil
	}
	return reason(ctx)
}

// hostWait waits for real; other branches have their turn meanwhile.
func hostWait(ctx context.Context, b *branch, d time.Duration) error {
	if b != nil {
		due := b.group.clock.elapsed() + d
		b.group.pass()
		defer b.retake(due)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return reason(ctx)
	}
}

// Outside runs f, which waits for the world: an answer of a live model, say. With a real clock other branches have their turn
// meanwhile; f does nothing then that wants one. A paused clock stands, and nobody else runs.
func (c *Clock) Outside(ctx context.Context, f func() error) error {
	c.idle()
	if !c.real {
		return f()
	}
	if b := c.claim(ctx); b != nil {
		b.group.pass()
		defer func() { b.retake(c.elapsed()) }()
	}
	return f()
}

// moveAlone moves a paused clock to due for a goroutine that is nobody's branch.
func (c *Clock) moveAlone(ctx context.Context, due time.Duration) error {
	for c.step(due) {
		if err := ctx.Err(); err != nil && c.elapsed() < due {
			return reason(ctx)
		}
	}
	return nil
}

// step moves a paused clock towards due: to the next timer on the way, which it fires, or, where none is left, to due itself, and
// then it says false. A clock that is past due stays where it is.
func (c *Clock) step(due time.Duration) bool {
	c.mu.Lock()
	if len(c.timers) == 0 || c.timers[0].due > due {
		c.to(due)
		c.mu.Unlock()
		return false
	}
	t := c.timers[0]
	c.to(t.due)
	fire := t.fired(due)
	c.mu.Unlock()
	fire()
	return true
}

// to is called under mu.
func (c *Clock) to(due time.Duration) {
	if int64(due) > c.since.Load() {
		c.since.Store(int64(due))
	}
}

// reason is why ctx is done, nil while it is not: what errOf says, and the cause that whoever cancelled it gave.
func reason(ctx context.Context) error {
	err := errOf(ctx)
	if cause := context.Cause(ctx); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// errOf is ctx.Err. A context below a timeout of this clock says Canceled itself, and its cause says what it was.
func errOf(ctx context.Context) error {
	err := ctx.Err()
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}
