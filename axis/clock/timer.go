package clock

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// A Timer is time.Timer on a Clock. Its methods are for any number of goroutines.
type Timer struct {
	// C takes the time at which the timer fired, which stands on no tape; of a real clock the host's. Nil of AfterFunc. On a paused
	// clock a receive moves nothing: see the package comment.
	C <-chan time.Time

	clock *Clock
	ch    chan time.Time // C of a paused clock, with room for one
	f     func()         // called in place of a send

	// Of a paused clock, under Clock.mu.
	due    time.Duration
	order  uint64
	period time.Duration // of a ticker

	host *time.Timer // of a real clock: all that there is beside C
}

// NewTimer is time.NewTimer.
func (c *Clock) NewTimer(d time.Duration) *Timer {
	if c.real {
		host := time.NewTimer(d)
		return &Timer{C: host.C, host: host}
	}
	t := newTimer(c, nil)
	t.arm(d, 0)
	return t
}

// After is time.After.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C }

// AfterFunc is time.AfterFunc. On a paused clock whoever moves it waits until f, on a goroutine of its own, has ended: f sees the
// time at which it was due, and must not wait for that goroutine. Timers that are due at once fire in the order in which they were
// set, and before any branch that is.
func (c *Clock) AfterFunc(d time.Duration, f func()) *Timer {
	if c.real {
		return &Timer{host: time.AfterFunc(d, f)}
	}
	t := newTimer(c, apart(f))
	t.arm(d, 0)
	return t
}

// apart is f on a goroutine of its own, which is waited for. A panic ends the program, as in package time, and runtime.Goexit ends
// nobody's turn.
func apart(f func()) func() {
	return func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
}

func newTimer(c *Clock, f func()) *Timer {
	t := &Timer{clock: c, f: f}
	if f == nil {
		t.ch = make(chan time.Time, 1)
		t.C = t.ch
	}
	return t
}

// Stop is (*time.Timer).Stop: true where it kept the timer from firing, or a time from being received. None is received after it.
func (t *Timer) Stop() bool {
	if t.host != nil {
		return t.host.Stop()
	}
	t.clock.mu.Lock()
	active := t.clock.timers.remove(t)
	t.clock.mu.Unlock()
	select {
	case <-t.ch:
		return true
	default:
		return active
	}
}

// Reset is (*time.Timer).Reset: it says what Stop would have.
func (t *Timer) Reset(d time.Duration) bool {
	if t.host != nil {
		return t.host.Reset(d)
	}
	active := t.Stop()
	t.arm(d, 0)
	return active
}

// A Ticker is time.Ticker on a Clock: ticks that nobody received in time are dropped.
type Ticker struct {
	C    <-chan time.Time // as Timer.C
	t    *Timer           // of a paused clock
	host *time.Ticker     // of a real one
}

// NewTicker is time.NewTicker: it panics when d is not above zero.
func (c *Clock) NewTicker(d time.Duration) *Ticker {
	if c.real {
		host := time.NewTicker(d)
		return &Ticker{C: host.C, host: host}
	}
	t := newTimer(c, nil)
	k := &Ticker{C: t.C, t: t}
	k.Reset(d)
	return k
}

// Stop ends the ticks. It does not close C.
func (k *Ticker) Stop() {
	if k.host != nil {
		k.host.Stop()
		return
	}
	k.t.Stop()
}

// Reset stops the ticker and starts it with another period.
func (k *Ticker) Reset(d time.Duration) {
	k.Stop()
	if k.host != nil {
		k.host.Reset(d)
		return
	}
	if d <= 0 {
		panic("clock: the period of a ticker is not above zero")
	}
	k.t.arm(d, d)
}

// arm arms a timer of a paused clock, to fire again each period where that is not 0.
func (t *Timer) arm(d, period time.Duration) {
	c := t.clock
	c.mu.Lock()
	c.timers.remove(t)
	t.period = period
	now := c.elapsed()
	t.due = now + min(max(d, 0), math.MaxInt64-now) // one past the clock's end never fires
	c.order++
	t.order = c.order
	c.timers.add(t)
	c.mu.Unlock()
}

// fired is called under mu with the clock at the timer's due time, on its way to limit. It returns what is to be done once mu is
// not held.
func (t *Timer) fired(limit time.Duration) func() {
	c := t.clock
	c.timers.remove(t)
	if t.f != nil {
		return t.f
	}
	if t.period > 0 {
		periods := time.Duration(1)
		if len(t.ch) > 0 { // which nobody who runs before limit could make room in: the ticks until then are dropped
			periods = max(1, (min(limit, c.timers.nextCall())-t.due)/t.period)
		}
		t.due += t.period * periods
		if t.due > 0 { // else past the clock's end
			c.timers.add(t)
		}
	}
	wall, _ := c.Stamp()
	select {
	case t.ch <- time.UnixMilli(wall).UTC():
	default: // the last one was not received
	}
	return func() {}
}

// A queue has the armed timers by due time, then by order. Its callers hold Clock.mu.
type queue []*Timer

// find is the place of an armed timer, or the one that it would have.
func (q queue) find(t *Timer) (at int, armed bool) {
	return slices.BinarySearchFunc(q, t, func(a, b *Timer) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.order, b.order))
	})
}

func (q *queue) add(t *Timer) {
	at, _ := q.find(t)
	*q = slices.Insert(*q, at, t)
}

// remove reports whether the timer was armed.
func (q *queue) remove(t *Timer) bool {
	at, armed := q.find(t)
	if armed {
		*q = slices.Delete(*q, at, at+1)
	}
	return armed
}

// nextCall is when the next function is due.
func (q queue) nextCall() time.Duration {
	for _, t := range q {
		if t.f != nil {
			return t.due
		}
	}
	return math.MaxInt64
}

// WithTimeout is context.WithTimeout: d is the clock's time. The context, and contexts with values below it, fail with
// context.DeadlineExceeded; one that was made cancellable below it fails, on a paused clock, with context.Canceled, and its
// context.Cause is DeadlineExceeded. Its Deadline is the parent's on a paused clock, since what asks for one counts in the host's
// time.
func (c *Clock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if c.real {
		return context.WithTimeout(parent, d)
	}
	inner, cancel := context.WithCancelCause(parent)
	ctx := &timeoutCtx{Context: inner}
	if d <= 0 {
		cancel(context.DeadlineExceeded)
		return ctx, func() {}
	}
	t := newTimer(c, func() { cancel(context.DeadlineExceeded) })
	t.arm(d, 0)
	return ctx, func() {
		t.Stop()
		cancel(context.Canceled)
	}
}

// WithDeadline is context.WithDeadline: at is the clock's time. See WithTimeout.
func (c *Clock) WithDeadline(parent context.Context, at time.Time) (context.Context, context.CancelFunc) {
	return c.WithTimeout(parent, at.Sub(c.start)-c.elapsed())
}

// A timeoutCtx says what a cancelled context cannot: that it was the time. It shares the Done channel of the context in it, so that
// what is below is cancelled before the clock goes on.
type timeoutCtx struct{ context.Context }

func (t *timeoutCtx) Err() error { return errOf(t.Context) }
