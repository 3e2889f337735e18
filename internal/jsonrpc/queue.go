package jsonrpc

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// A buffer is a frame that is being made and sent.
type buffer struct {
	b    []byte
	held int64 // bytes of it in the budget
}

// keepBuffer is the largest buffer, in bytes, that is used again.
const keepBuffer = 16 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 512)} }}

func newBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.b, b.held = b.b[:0], 0
	return b
}

func (b *buffer) free() {
	if cap(b.b) <= keepBuffer {
		buffers.Put(b)
	}
}

// A queue holds the frames that wait to be written. They count until they are.
type queue struct {
	limit, allowance int
	budget           *Budget

	mu     sync.Mutex
	filled sync.Cond // something is in frames, or it is closed: for the writer
	room   sync.Cond // bytes became fewer, or it is closed: for everybody else
	frames []*buffer
	bytes  int
	closed bool
}

func (q *queue) init(o *Options) {
	q.limit, q.allowance, q.budget = o.Limits.Queue, o.Limits.Allowance, o.Budget
	q.filled.L, q.room.L = &q.mu, &q.mu
}

// put queues a frame, which is the queue's from then on. Where there is no room it waits, unless ctx ends, or returns
// ErrQueueFull at once.
func (q *queue) put(ctx context.Context, b *buffer, wait bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && !q.fits(b) {
		if !wait {
			return ErrQueueFull
		}
		q.await(ctx, func() bool { return q.fits(b) })
		if ctx.Err() != nil && !q.closed {
			q.budget.Give(b.held)
			return ctx.Err()
		}
	}
	if q.closed {
		q.budget.Give(b.held)
		return ErrClosed
	}
	q.frames = append(q.frames, b)
	q.bytes += len(b.b)
	q.filled.Signal()
	return nil
}

// fits reports whether b has room, and pays for it. An empty queue has room for any frame. q.mu is held.
func (q *queue) fits(b *buffer) bool {
	n := q.bytes + len(b.b)
	switch {
	case q.bytes == 0:
		return true
	case n > q.limit:
		return false
	case n <= q.allowance:
		return true
	case b.held > 0:
		return true
	}
	var ok bool
	b.held, ok = q.budget.TryTake(int64(len(b.b)))
	return ok
}

// take waits for frames and returns all that are there; none when the queue is closed. It uses the memory of spare.
func (q *queue) take(spare []*buffer) []*buffer {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) == 0 && !q.closed {
		q.filled.Wait()
	}
	if q.closed {
		return nil
	}
	batch := q.frames
	q.frames = spare[:0]
	return batch
}

// written says that a frame has left.
func (q *queue) written(b *buffer) {
	q.budget.Give(b.held)
	q.mu.Lock()
	q.bytes -= len(b.b)
	q.room.Broadcast()
	q.mu.Unlock()
	b.free()
}

// await waits until something holds, the queue is closed, or ctx ends. q.mu is held.
func (q *queue) await(ctx context.Context, holds func() bool) {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.room.Broadcast()
	})
	defer stop()
	for !q.closed && ctx.Err() == nil && !holds() {
		q.room.Wait()
	}
}

// flush waits until everything is written, or the time is over.
func (q *queue) flush(atMost time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), atMost)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.await(ctx, func() bool { return q.bytes == 0 })
}

// close forgets what was not written.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, b := range q.frames {
		q.budget.Give(b.held)
	}
	q.frames = nil
	q.filled.Broadcast()
	q.room.Broadcast()
}

// write sends what is queued until the conversation ends. Serve starts it and waits for it.
func (c *Conn) write() {
	defer c.wg.Done()
	var batch, spare []*buffer
	stuck := time.AfterFunc(time.Hour, c.tooSlow)
	stuck.Stop()
	defer stuck.Stop()
	for batch = c.out.take(spare); len(batch) > 0; batch = c.out.take(spare) {
		for i, b := range batch {
			stuck.Reset(c.o.Limits.WriteTimeout)
			err := c.stream.Write(b.b, i < len(batch)-1)
			stuck.Stop()
			c.out.written(b)
			batch[i] = nil
			if err != nil {
				c.giveUp(batch[i+1:], err)
				return
			}
		}
		spare = batch
		if cap(spare) > 1024 {
			spare = nil
		}
	}
}

// giveUp ends the conversation because a frame could not be written.
func (c *Conn) giveUp(rest []*buffer, err error) {
	for _, b := range rest {
		c.out.written(b)
	}
	if errors.Is(err, ErrClosed) {
		return // a close is under way: whoever reads sees the end of it
	}
	c.end(err)
	_ = c.stream.Close(0, "")
}

// tooSlow ends the conversation with a peer that does not read. The frame is in the middle of being written: there is no saying
// good-bye.
func (c *Conn) tooSlow() {
	c.refused(RefusedSlow)
	c.end(&CloseError{Code: ClosePolicy, Reason: "the peer does not read", Ours: true})
	_ = c.stream.Close(0, "")
}

// A Budget bounds the bytes that all connections of a process hold together, beyond what each may hold by itself. Who comes
// first is served first, so that many short frames do not starve a long one. A nil Budget has no bound.
type Budget struct {
	total int64
	used  atomic.Int64
	free  *semaphore.Weighted
}

// NewBudget returns one of that many bytes. A claim of more than that is one of all of it.
func NewBudget(bytes int64) *Budget {
	total := max(bytes, 1)
	return &Budget{total: total, free: semaphore.NewWeighted(total)}
}

// Used returns how many bytes are taken, and of how many.
func (b *Budget) Used() (used, total int64) { return b.used.Load(), b.total }

// Take waits until n bytes are free, and takes them: held is how many are to be given back. It reports false, and has taken none, when ctx
// ended before.
func (b *Budget) Take(ctx context.Context, n int64) (held int64, ok bool) {
	return b.claim(n, func(n int64) bool { return b.free.Acquire(ctx, n) == nil })
}

// TryTake is Take for who does not wait.
func (b *Budget) TryTake(n int64) (held int64, ok bool) {
	return b.claim(n, func(n int64) bool { return b.free.TryAcquire(n) })
}

func (b *Budget) claim(n int64, acquire func(n int64) bool) (held int64, ok bool) {
	if b == nil {
		return 0, true
	}
	if n = min(n, b.total); !acquire(n) {
		return 0, false
	}
	b.used.Add(n)
	return n, true
}

// Give returns n bytes that were taken.
func (b *Budget) Give(n int64) {
	if b == nil || n <= 0 {
		return
	}
	b.used.Add(-n)
	b.free.Release(n)
}

// A bucket holds tokens, with which a peer pays for what it asks. It is for one goroutine.
type bucket struct {
	rate, burst float64 // tokens a second, and at most
	tokens      float64
	at          time.Time // when tokens was right
}

func newBucket(rate float64, burst int) bucket {
	b := bucket{rate: rate, burst: max(float64(burst), rate*slice.Seconds()), at: time.Now()}
	if rate > 0 { // a full bucket is saved, not given: else who connects again and again pays for nothing
		b.at = b.at.Add(-max(slice, time.Duration(b.burst/5/rate*float64(time.Second))))
	}
	return b
}

// slice is how long a peer that has spent its tokens is not read, at least: what it sent meanwhile is then read, served and
// answered at once, in a tenth of the system calls and without waking anybody for each. It is short because the others wait for it:
// while there is somebody to serve on every processor, the runtime looks for what has come from the network every 10 ms alone.
const slice = 20 * time.Millisecond

// take takes tokens: more than there are, up to those of a second.
func (b *bucket) take(cost float64) {
	if b.tokens < cost {
		b.fill()
	}
	b.tokens = max(b.tokens-cost, -b.rate)
}

// owed is how long the peer is not read, for it has spent more than it had.
func (b *bucket) owed() time.Duration {
	if b.rate <= 0 || b.tokens >= 0 {
		return 0
	}
	if b.fill(); b.tokens >= 0 {
		return 0
	}
	return max(slice, time.Duration(-b.tokens/b.rate*float64(time.Second)))
}

// fill puts in what has come since it did so last.
func (b *bucket) fill() {
	now := time.Now()
	b.tokens = min(b.burst, b.tokens+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
}
