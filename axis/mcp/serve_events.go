package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

const (
	// maxUnheard bounds how many messages wait for a client that does not listen to what is said unasked. The oldest are dropped.
	maxUnheard = 10000
	// keptEvents is how many events of a stream are kept once they were written: a connection that broke may have lost them.
	keptEvents = 100
	// keptBytes bounds the streams of a session that are kept although they have ended. The newest one is kept in any case.
	keptBytes = 32 << 20
)

// An eventLog is one stream of events of a client. What is put into it waits for the connection that takes it, and a connection that
// broke goes on with another (Last-Event-ID).
type eventLog struct {
	name string // of the stream, with which the ids of its events begin; "" gives them none
	max  int    // how many events wait; 0: all

	mu      sync.Mutex // guards what follows
	events  [][]byte
	first   int  // how many were before events[0], and are forgotten
	written int  // how many a connection has taken
	readers int  // connections
	ended   bool // nothing comes behind
	changed lane.Change
}

// put is the outlet of the stream. It never fails, and never waits.
func (l *eventLog) put(message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, message)
	if l.max > 0 && len(l.events) > l.max {
		l.forget(l.first + len(l.events) - l.max)
	}
	l.changed.Happened()
	return nil
}

// end says that nothing more comes.
func (l *eventLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.changed.Happened()
}

// forget lets go of the first n events. l.mu is held.
func (l *eventLog) forget(n int) {
	if n <= l.first {
		return
	}
	l.events = append([][]byte(nil), l.events[n-l.first:]...)
	l.first = n
}

// take returns the events behind the first seen ones, and how many are before them; changed is nil where nothing comes any more.
func (l *eventLog) take(seen int) (events [][]byte, before int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written < seen {
		l.written = seen
		l.forget(seen - keptEvents)
	}
	before = min(max(seen, l.first), l.first+len(l.events))
	if events = l.events[before-l.first:]; len(events) == 0 && l.ended {
		return nil, before, nil
	}
	return events, before, l.changed.Next()
}

// size is how many bytes the stream holds; open reports whether more may come.
func (l *eventLog) size() (n int, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		n += len(e)
	}
	return n, !l.ended
}

// enter makes a connection one that takes what no other has taken, which of a stream one does at a time, or in another's place one that goes
// on where that was: it may not have noticed that it is broken. serve ends it.
func (l *eventLog) enter(inPlace bool) (seen int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers > 0 && !inPlace {
		return 0, false
	}
	l.readers++
	return l.written, true
}

func (l *eventLog) left() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
}

// serve writes the events behind the first seen ones, until the last has been written, the client leaves, or gone is done.
func (l *eventLog) serve(w http.ResponseWriter, r *http.Request, gone context.Context, seen int) {
	defer l.left()
	rc := beginEvents(w)
	for {
		events, before, changed := l.take(seen)
		for i, e := range events {
			seen = before + i + 1
			if l.name != "" {
				fmt.Fprintf(w, "id: %s-%d\n", l.name, seen)
			}
			if _, err := fmt.Fprintf(w, "event: message\ndata: %s\n\n", e); err != nil {
				return
			}
		}
		if rc.Flush() != nil || changed == nil {
			return
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-gone.Done():
			return
		}
	}
}

// beginEvents makes a response one of events.
func beginEvents(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no")
	return http.NewResponseController(w)
}

// streams are those of one session.
type streams struct {
	own *eventLog // what is said unasked

	mu   sync.Mutex // guards what follows
	last int
	all  []*eventLog // with the answers to a POST, oldest first
}

func newStreams() *streams {
	return &streams{own: &eventLog{name: "0", max: maxUnheard}}
}

// open begins the stream of a POST, which is its first reader, and forgets old ones.
func (s *streams) open() *eventLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := 0
	for i := len(s.all) - 1; i >= 0; i-- {
		n, open := s.all[i].size()
		if kept += n; kept > keptBytes && !open {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
		}
	}
	s.last++
	l := &eventLog{name: strconv.Itoa(s.last), readers: 1}
	s.all = append(s.all, l)
	return l
}

// errNoEvent is the error of an event id that the session does not know, or no more.
var errNoEvent = errors.New("no such event")

// find is the stream of an event, and how many of its events there are up to that one.
func (s *streams) find(event string) (l *eventLog, seen int, err error) {
	name, number, _ := strings.Cut(event, "-")
	if seen, err = strconv.Atoi(number); err != nil || seen < 0 {
		return nil, 0, errNoEvent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range append([]*eventLog{s.own}, s.all...) {
		if l.name == name {
			return l, seen, nil
		}
	}
	return nil, 0, errNoEvent
}
