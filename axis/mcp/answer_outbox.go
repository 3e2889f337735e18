package mcp

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// errClientGone is the error of a client that takes nothing any more.
var errClientGone = errors.New("the client has gone")

// An outbox holds what is to be written, in its order, for the one goroutine that writes: a client that does not read must not keep
// what it says from being heard.
type outbox struct {
	ctx   context.Context
	speed float64

	wake chan struct{} // one token: something has changed

	mu      sync.Mutex // guards what follows
	queue   []outgoing
	pending int       // how many are to be written at once, and are not yet
	written sync.Cond // broadcast when pending is less
	ended   bool      // nothing comes behind the queue
}

// An outgoing is one thing to write.
type outgoing struct {
	line  *bookLine  // of the tape, of which parts are to be written
	parts []bookPart // nil: bytes
	bytes []byte
	due   time.Time // zero: at once
	asked []asker   // by part
}

func newOutbox(ctx context.Context, speed float64) *outbox {
	o := &outbox{ctx: ctx, speed: speed, wake: make(chan struct{}, 1)}
	o.written.L = &o.mu
	return o
}

// put adds something; it never waits.
func (o *outbox) put(g outgoing) {
	o.mu.Lock()
	o.queue = append(o.queue, g)
	if g.due.IsZero() {
		o.pending++
	}
	o.mu.Unlock()
	o.signal()
}

// end says that nothing more comes.
func (o *outbox) end() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// did notes that n of what was to be written at once are.
func (o *outbox) did(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending -= n
	o.written.Broadcast()
}

// settled waits until what was to be written at once is, for at most limit: a client that says much before it reads must be heard.
func (o *outbox) settled(limit time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending <= 0 {
		return
	}
	late := false
	defer time.AfterFunc(limit, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.written.Broadcast()
	}).Stop()
	for o.pending > 0 && !late {
		o.written.Wait()
	}
}

// run writes what is put, until the end or the first error, which is the context's where that is done.
func (o *outbox) run(write func(*outgoing) error) error {
	defer o.did(math.MaxInt) // nothing is written any more
	for {
		queue, ended := o.take()
		for i := range queue {
			if err := o.wait(queue[i].due); err != nil {
				return err
			}
			if err := write(&queue[i]); err != nil {
				return err
			}
			if queue[i].due.IsZero() {
				o.did(1)
			}
		}
		if len(queue) > 0 {
			continue
		}
		if ended {
			return nil
		}
		select {
		case <-o.wake:
		case <-o.ctx.Done():
			return o.ctx.Err()
		}
	}
}

func (o *outbox) take() ([]outgoing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue
	o.queue = nil
	return q, o.ended
}

// wait waits until due.
func (o *outbox) wait(due time.Time) error {
	if err := o.ctx.Err(); err != nil || due.IsZero() {
		return err
	}
	return pause(o.ctx, time.Until(due))
}
