package mcp

import (
	"bytes"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A webStream is the one stream of a replayed conversation of HTTP+SSE, on which all of its answers come. Between the recorded events it
// brings what stands nowhere in them: refusals, and answers whose requests come later than they did. It may be used by several goroutines at
// once.
type webStream struct {
	get  *passage
	mu   sync.Mutex // guards what follows, and makes its users take turns
	say  exchange.Between
	held []*unit // events that answer what has not been asked, in recorded order
}

// close says that nothing passes any more. It waits for what is under way.
func (s *webStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say = nil
}

// tell sends a line of our own. A client that is gone does not read it.
func (s *webStream) tell(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(append(append([]byte("event: message\ndata: "), line...), "\n\n"...), line)
}

// send puts an event that holds a line on the stream. The caller holds mu.
func (s *webStream) send(event, line []byte) error {
	if s.say == nil {
		return nil
	}
	if err := s.get.talk.Line(Server, line, s.get.asked.Arrival); err != nil {
		return err
	}
	_ = s.say(event)
	return nil
}

// hold keeps an event back that answers what has not been asked, and reports whether it did: its ids may be those of other requests of
// this run.
func (s *webStream) hold(u *unit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.get.talk.asked(u.data()) {
		return false
	}
	raw := bytes.Clone(u.raw)
	s.held = append(s.held, newUnit(raw))
	return true
}

// came sends what was held back until now: another request has come.
func (s *webStream) came() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.held = nil
	for _, u := range held {
		if !s.get.talk.asked(u.data()) {
			s.held = append(s.held, u)
			continue
		}
		if err := s.send(u.edited(s.get.talk.edits(u.data(), new(webNames)))); err != nil {
			return err
		}
	}
	return nil
}

// asked reports whether the requests that a recorded line answers have come.
func (t *webTalk) asked(line []byte) bool {
	messages, _, err := Parse(line)
	if err != nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range messages {
		if m := &messages[i]; m.IsAnswer() && m.hasID() && t.names.ids[string(m.ID)] == nil {
			return false
		}
	}
	return true
}
