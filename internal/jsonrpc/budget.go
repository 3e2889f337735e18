package jsonrpc

import (
	"container/list"
	"sync"
	"time"
)

// A Budget bounds the bytes that all connections of a process hold together, beyond what each may hold by itself. Who comes
// first is served first, so that many short frames do not starve a long one.
type Budget struct {
	total int64

	mu      sync.Mutex
	used    int64
	waiting list.List // of *claim
}

type claim struct {
	n     int64
	given chan struct{}
}

// NewBudget returns one of that many bytes. A claim of more than that is one of all of it.
func NewBudget(bytes int64) *Budget { return &Budget{total: max(bytes, 1)} }

// Used returns how many bytes are taken, and of how many.
func (b *Budget) Used() (used, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.total
}

// Take waits until n bytes are free, and takes them. It reports false, and has taken none, when done was closed or the time
// is over before (0 does not wait; less than 0 waits without bound). A nil Budget has no bound.
func (b *Budget) Take(n int64, wait time.Duration, done <-chan struct{}) bool {
	if b == nil || n <= 0 {
		return true
	}
	b.mu.Lock()
	n = min(n, b.total)
	if b.waiting.Len() == 0 && b.used+n <= b.total {
		b.used += n
		b.mu.Unlock()
		return true
	}
	if wait == 0 {
		b.mu.Unlock()
		return false
	}
	c := &claim{n, make(chan struct{})}
	at := b.waiting.PushBack(c)
	b.mu.Unlock()
	return b.await(c, at, wait, done)
}

func (b *Budget) await(c *claim, at *list.Element, wait time.Duration, done <-chan struct{}) bool {
	var over <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-c.given:
		return true
	case <-done:
	case <-over:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.given: // in the same moment
		b.used -= c.n
	default:
		b.waiting.Remove(at)
	}
	b.serve()
	return false
}

// Give returns n bytes that were taken.
func (b *Budget) Give(n int64) {
	if b == nil || n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= min(n, b.total)
	b.serve()
}

// serve gives what is free to those who wait longest.
func (b *Budget) serve() {
	for e := b.waiting.Front(); e != nil; e = b.waiting.Front() {
		c := e.Value.(*claim)
		if b.used+c.n > b.total {
			return
		}
		b.used += c.n
		b.waiting.Remove(e)
		close(c.given)
	}
}

// A bucket holds tokens, of which each request takes one. It is for one goroutine.
type bucket struct {
	rate, burst float64 // tokens a second, and at most
	tokens      float64
	at          time.Time // when tokens was right
}

func newBucket(rate float64, burst int) bucket {
	return bucket{rate: rate, burst: float64(burst), tokens: float64(burst), at: time.Now()}
}

// take takes a token and returns how long to wait before it is there.
func (b *bucket) take() time.Duration {
	if b.rate <= 0 {
		return 0
	}
	if b.tokens < 1 {
		now := time.Now()
		b.tokens = min(b.burst, b.tokens+now.Sub(b.at).Seconds()*b.rate)
		b.at = now
	}
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / b.rate * float64(time.Second))
}
