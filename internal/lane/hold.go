package lane

import (
	"context"
	"time"
)

// A Clock tells the time and wakes who waits.
type Clock interface {
	Now() time.Time
	// Timer sends once d has passed, unless stop was called before.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// realClock is the clock of the machine.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// clockOr is c, or the clock of the machine for nil.
func clockOr(c Clock) Clock {
	if c == nil {
		return realClock{}
	}
	return c
}

// A Change wakes those that wait for something to happen. Its zero value works; who uses it holds the lock of what may happen.
type Change struct{ next chan struct{} }

// Next is closed when something happens.
func (c *Change) Next() <-chan struct{} {
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Happened wakes who waits.
func (c *Change) Happened() {
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Forever is the limit of a wait that nothing ends but what is waited for.
const Forever time.Duration = -1

// Hold waits until nothing is missing. missing returns what is closed when that may have changed, nil where nothing is missing any
// more, and how much longer that may take at most; giveUp is called when it took longer, and must make it less. The error is ctx's.
func Hold(ctx context.Context, clock Clock, missing func() (changed <-chan struct{}, left time.Duration), giveUp func()) error {
	for {
		changed, left := missing()
		if changed == nil {
			return nil
		}
		late, err := wait(ctx, clock, changed, left)
		if err != nil {
			return err
		}
		if late {
			giveUp()
		}
	}
}

// wait waits for changed, at most for left; late says that it took longer. The error is ctx's.
func wait(ctx context.Context, clock Clock, changed <-chan struct{}, left time.Duration) (late bool, err error) {
	var limit <-chan time.Time
	if left != Forever {
		c, stop := clockOr(clock).Timer(max(left, 0))
		defer stop()
		limit = c
	}
	select {
	case <-changed:
		return false, nil
	case <-limit:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Pause waits for d. The error is ctx's, where that is done before.
func Pause(ctx context.Context, clock Clock, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	_, err := wait(ctx, clock, nil, d)
	return err
}

// Between is the time from one moment of a recording to another, both in ms; 0 where the other came first.
func Between(from, to int64) time.Duration { return time.Duration(max(to-from, 0)) * time.Millisecond }
