package mcp

import (
	"errors"
	"io"
	"time"
)

// endIfDone ends the talk where the client has ended it, or there is nothing left of it and the server had.
func (p *play) endIfDone() {
	if !p.ended && (!p.talk.end.byServer || len(p.owned) > 0 || p.free < len(p.talk.free) || p.open < len(p.came)) {
		return
	}
	if wait := time.Until(p.ends()); wait > 0 {
		p.timer = time.AfterFunc(wait, p.endNow)
		return
	}
	p.stopped = true
	p.out.end()
}

// ends is when the talk ends by itself, in whatever time the rest is answered. A server that was sent a signal waits for it, and one that
// ended with a request open for a client that may have waited no longer.
func (p *play) ends() time.Time {
	e := &p.talk.end
	took := recordedFor(p.lastAt, e.at)
	switch {
	case sentSignal(e.signal):
		return p.last.Add(took + p.s.book.order.hold)
	case e.open && !p.ended:
		return p.last.Add(took + min(took, p.s.book.order.hold))
	}
	return p.last
}

// endNow is step when the talk's end is due.
func (p *play) endNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step()
}

// finish notes that the client said its last.
func (p *play) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if !errors.Is(err, io.EOF) {
		p.fail(err)
	}
	p.step()
}

// fail keeps the first error.
func (p *play) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// stop ends the play for good.
func (p *play) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *play) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// end says on the tape who ended the talk.
func (p *play) end(err error) (int, error) {
	by := Client
	if p.talk.end.byServer && !p.clientEnded() {
		by = Server
	}
	p.o.Log.endedBy(by)
	return p.talk.end.exit, err
}

func (p *play) clientEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}
