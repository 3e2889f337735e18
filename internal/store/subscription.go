package store

import (
	"context"
	"io"
	"sync"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// SubscribeOptions bound what waits for a subscriber. Nil and zero work.
type SubscribeOptions struct {
	MaxEvents int // that wait; 0 means 256
	MaxBytes  int // of them; 0 means 1 MiB
	// MaxSnapshot bounds the bytes of the snapshot, but for its first turn; 0: no bound. Turns that do not fit are lost to the
	// subscriber, who is told so before anything else.
	MaxSnapshot int
}

func (o *SubscribeOptions) orDefault() SubscribeOptions {
	d := SubscribeOptions{MaxEvents: 256, MaxBytes: 1 << 20}
	if o != nil && o.MaxEvents > 0 {
		d.MaxEvents = o.MaxEvents
	}
	if o != nil && o.MaxBytes > 0 {
		d.MaxBytes = o.MaxBytes
	}
	if o != nil {
		d.MaxSnapshot = o.MaxSnapshot
	}
	return d
}

// An Event is a record that was added to a run, or that the subscriber was too slow for some.
type Event struct {
	Record []byte // the line without newline; nil where Lost is not 0. It must not be changed
	Cursor int    // its place in the run, as TraceOptions.From takes it: a turn's is the count of turns with it, the end has one more
	Status runtrace.Status
	Lost   int // records that were not kept for this subscriber
	From   int // the first of them, as TraceOptions.From takes it
}

// A Subscription gives every record that a run gets after its snapshot, in order: no gap, no record twice. Nobody waits for a
// slow subscriber: what does not fit into its bounds is lost to it, it is told which records those were, and what follows them
// comes again. It is for one reader.
type Subscription struct {
	ID     runtrace.ID
	Turns  [][]byte // the snapshot: lines of the turns so far, without newline, as far as MaxSnapshot goes
	Cursor int      // how many
	Status runtrace.Status

	bounds SubscribeOptions
	leave  func() // takes it out of its feed
	ready  chan struct{}

	mu    sync.Mutex
	queue []Event
	bytes int
	lost  Event // Lost is 0 where none is
	over  bool  // nothing more comes
}

func newSubscription(id runtrace.ID, o *SubscribeOptions) *Subscription {
	return &Subscription{ID: id, bounds: o.orDefault(), ready: make(chan struct{}, 1), leave: func() {}}
}

// Next waits for the next event. The error is io.EOF after the run's end or Close, or that of ctx.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, over := s.take(); ok {
			return e, nil
		} else if over {
			return Event{}, io.EOF
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

func (s *Subscription) take() (e Event, ok, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.queue) > 0:
		e = s.queue[0]
		s.queue[0] = Event{}
		s.queue = s.queue[1:]
		s.bytes -= len(e.Record)
	case s.lost.Lost > 0:
		e, s.lost = s.lost, Event{}
	default:
		return Event{}, false, s.over
	}
	return e, true, false
}

// Close ends the subscription. It may be called twice.
func (s *Subscription) Close() {
	s.leave()
	s.finish()
}

// finish makes Next end after what waits.
func (s *Subscription) finish() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // it is awake
	}
}

// push adds an event of a record.
func (s *Subscription) push(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return
	case s.lost.Lost > 0 || len(s.queue) >= s.bounds.MaxEvents || s.bytes+len(e.Record) > s.bounds.MaxBytes && len(s.queue) > 0:
		if s.lost.Lost == 0 {
			s.lost.From = e.Cursor
		}
		s.lost.Lost++
		s.lost.Cursor, s.lost.Status = e.Cursor, e.Status
	default:
		s.queue = append(s.queue, e)
		s.bytes += len(e.Record)
	}
	s.wake()
}

// snapshot sets what the subscription begins with: the records of t, which begin with the run's first turn, of a run that had so
// many turns and that status.
func (s *Subscription) snapshot(t *Trace, turns int, status runtrace.Status) {
	s.Turns = t.Records[:min(turns, len(t.Records))]
	s.Cursor, s.Status = len(s.Turns), status
	left := turns - s.Cursor
	if left == 0 {
		return
	}
	if status != runtrace.InProgress {
		left++ // the end is behind what is missing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := Event{Lost: left, From: t.Next, Cursor: t.Next + left - 1, Status: status}
	for _, e := range s.queue { // what came meanwhile follows what is missing
		lost.Lost++
		lost.Cursor, lost.Status = e.Cursor, e.Status
	}
	if s.lost.Lost > 0 {
		lost.Lost += s.lost.Lost
		lost.Cursor, lost.Status = s.lost.Cursor, s.lost.Status
	}
	s.queue, s.bytes, s.lost = nil, 0, lost
	s.wake()
}

// A feed is the subscriptions of one run. Whoever keeps the run guards it.
type feed map[*Subscription]struct{}

// publish hands a record to every subscriber; the run's last one ends them.
func (f feed) publish(e Event) {
	for s := range f {
		s.push(e)
		if e.Status != runtrace.InProgress {
			s.finish()
		}
	}
}
