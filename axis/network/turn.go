package network

import (
	"sync"
	"time"
)

// A turn is what one connection gives the program next, after what others give and before what comes later (Config.Giving): whatever is written on
// one of HTTP/1, and one answer of one of HTTP/2, which carries several side by side. Nil is of a connection that is none of ours.
type turn struct {
	giving func(answer bool) (given func(ends bool)) // nil where nothing waits
	frames *frames                                   // of an answer of HTTP/2: they tell when it has left. Nil of HTTP/1

	mu        sync.Mutex
	beginning []func()   // see begins
	ends      bool       // see end
	loose     bool       // see inOrder
	taken     func(bool) // while it gives something: says that it has
	since     time.Time
}

// turnOf is that of an answer by a version of HTTP.
func (c *conn) turnOf(major int) *turn {
	switch {
	case c == nil:
		return nil
	case major == 2 && c.frames != nil:
		return &turn{giving: c.turn.giving, frames: c.frames}
	}
	return &c.turn
}

// take has the connection give something next, unless it does.
func (t *turn) take() {
	if t == nil || t.giving == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loose {
		return
	}
	if t.taken == nil || !t.ends && time.Since(t.since) > GiveMost {
		other := t.frames != nil && t.frames.last.Swap(t) != t
		t.taken = t.giving(len(t.beginning) > 0 || other)
		t.since = time.Now()
	}
}

// inOrder says whether what is written next waits for what others give.
func (t *turn) inOrder(yes bool) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.loose = !yes
	}
}

// begin calls what waits for the next bytes.
func (t *turn) begin() {
	t.mu.Lock()
	begin := t.beginning
	t.beginning = nil
	t.mu.Unlock()
	for _, begins := range begin {
		begins()
	}
}

// given has others give something, unless more is to come.
func (t *turn) given() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken == nil {
		return
	}
	t.taken(t.ends)
	if !t.ends {
		t.taken = nil
	}
}

// over has others give something, whatever was still to come.
func (t *turn) over() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken != nil {
		t.taken(false)
		t.taken = nil
	}
}

// end says that the connection ends with what is written next.
func (t *turn) end() {
	if t != nil && t.frames == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ends = true
	}
}

// begins has f called before the next bytes that the program gets: of an answer whose head has not left yet.
func (t *turn) begins(f func()) {
	if t == nil {
		f()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginning = append(t.beginning, f)
}

// writes says that so many bytes of an answer's body are about to be written, and whether its end is. What it returns waits until they have
// left, but for the end, which leaves later. HTTP/1 has them leave at once.
func (t *turn) writes(n int, end bool) (left func()) {
	if t == nil || t.frames == nil {
		return func() {}
	}
	t.take()
	t.begin()
	return t.expect(n, end)
}

// cut says that the answer is cut next.
func (t *turn) cut() {
	if t != nil && t.frames != nil {
		t.expect(0, true)
	}
}

// expect has the turn last until that has left.
func (t *turn) expect(n int, end bool) (left func()) {
	t.mu.Lock()
	taken := t.taken != nil
	t.mu.Unlock()
	if !taken {
		return func() {}
	}
	over := t.frames.expect(t, n, end)
	return func() { <-over }
}
