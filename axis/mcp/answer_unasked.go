package mcp

import (
	"context"
	"slices"
	"sync"
)

// methodListen is the request of the versions without sessions that is answered by notifications alone.
const methodListen = "subscriptions/listen"

// A subscription is where a client listens for what is said unasked.
type subscription struct {
	asker
	mu    sync.Mutex // held by who uses what follows
	out   outlet
	begun bool     // the client was told that it is heard
	held  [][]byte // what is said until then
}

// say says b to who listens, behind what tells it that it is heard.
func (s *subscription) say(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.held = append(s.held, b)
		return
	}
	_ = s.out(b)
}

// begin says what is held.
func (s *subscription) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.held {
		_ = s.out(b)
	}
	s.begun, s.held = true, nil
}

// listen says that the client is heard, and holds its subscription until it leaves. The subscription begins before the client knows of
// it: it may do at once what it is to hear about.
func (v *visit) listen(ctx context.Context, c *bookCall, who asker, out outlet) error {
	s := &subscription{asker: who, out: out}
	v.mu.Lock()
	v.subs[c] = append(v.subs[c], s)
	v.mu.Unlock()
	err := v.before(ctx, c, &who, out) // what is published meanwhile comes behind
	if err == nil {
		s.begin()
		select {
		case <-ctx.Done():
		case <-v.gone.Done():
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subs[c] = slices.DeleteFunc(v.subs[c], func(other *subscription) bool { return other == s })
	return err
}

// behind says what the server said behind the answer to c, when it worked on nothing. c may be nil. Who does not listen misses it. A
// response to what it asked so is waited for by nobody.
func (v *visit) behind(c *bookCall) {
	for _, p := range v.index.behind[c] {
		b, err := p.payload.Bytes(v.s.book.store)
		switch {
		case err != nil:
		case v.index.subscribed[p]:
			v.publish(p)
		case v.unasked == nil:
		case p.ask == nil:
			_ = v.unasked(v.reveal(b))
		default:
			if msgs, _, err := Parse(b); err == nil && len(msgs) == 1 && v.canBeAsked(msgs[0].Method) {
				_, _ = v.ask(b, v.unasked)
			}
		}
	}
}

// publish says a notification to those that listen as the client did that got it; to a client of the versions that do not listen, where
// it hears what is said unasked.
func (v *visit) publish(p *bookPart) {
	b, err := p.payload.Bytes(v.s.book.store)
	if err != nil {
		return
	}
	v.mu.Lock()
	subs, legacy := slices.Clone(v.subs[p.call]), v.legacy
	v.mu.Unlock()
	if legacy && v.unasked != nil {
		_ = v.unasked(v.reveal(b))
		return
	}
	for _, s := range subs {
		s.say(v.reveal(renamed(b, p, &s.asker)))
	}
}
