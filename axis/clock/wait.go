package clock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

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
