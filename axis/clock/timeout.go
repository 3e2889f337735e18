package clock

import (
	"context"
	"time"
)

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
