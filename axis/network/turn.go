package network

import (
	"net/http"
	"sync"
	"time"
)

// moreMost is how long others wait for more of what was given.
const moreMost = 5 * time.Millisecond

// A turn is what one connection gives the program next, after what others give and before what comes later (Config.Giving): whatever is written on
// one of HTTP/1, and one answer of one of HTTP/2, which carries several side by side. Nil is of a connection that is none of ours.
type turn struct {
	giving func(answer bool) (given func(ends bool)) // nil where nothing waits
	frames *frames                                   // of an answer of HTTP/2: they tell when it has left. Nil of HTTP/1
	stream uint32                                    // of it there

	mu        sync.Mutex
	beginning []func()   // see begins
	ends      bool       // see end
	loose     bool       // see inOrder
	more      bool       // likewise
	taken     func(bool) // while it gives something: says that it has
	since     time.Time
}

// turnOf is that of an answer by a version of HTTP, which is written to w.
func (c *conn) turnOf(major int, w http.ResponseWriter) *turn {
	switch {
	case c == nil:
		return nil
	case major == 2 && c.frames != nil:
		return c.turnOfStream(streamOf(w))
	}
	return &c.turn
}

func (c *conn) turnOfStream(stream uint32) *turn {
	return &turn{giving: c.turn.giving, frames: c.frames, stream: stream}
}

// take has the connection give something next, unless it does.
func (t *turn) take() {
	if t == nil || t.giving == nil {
		return
	}
	t.mu.Lock()
	takes := !t.loose && (t.taken == nil || !t.ends && time.Since(t.since) > GiveMost)
	answer := len(t.beginning) > 0
	t.mu.Unlock()
	if !takes {
		return
	}
	other := t.frames != nil && t.frames.last.Swap(t) != t
	taken := t.giving(answer || other)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken, t.since = taken, time.Now()
}

// inOrder says whether what is written next waits for what others give, and whether more is about to come that is given with it: a document comes
// with its head, as a rule, and a program makes nothing of that.
func (t *turn) inOrder(yes, more bool) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.loose, t.more = !yes, more
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
	if t.more {
		time.AfterFunc(moreMost, t.overMore)
		return
	}
	t.taken(t.ends)
	if !t.ends {
		t.taken = nil
	}
}

// overMore is over where more has not come.
func (t *turn) overMore() {
	t.mu.Lock()
	waits := t.more
	t.mu.Unlock()
	if waits {
		t.over()
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
		t.inOrder(true, false)
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
	if t.stream == 0 { // nobody can tell when it leaves
		t.given()
		return func() {}
	}
	over := t.frames.expect(t, n, end)
	return func() { <-over }
}
