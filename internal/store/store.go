// Package store keeps runs: acknowledged means on the disk.
//
// Goals: a turn that was acknowledged is there after any crash, once, in order, in its own run; thousands of runs share one fsync;
// the files that people read are plain lines; a slow reader holds nobody up; a PostgreSQL store can stand in its place, held to the
// same behaviour by conformance_test.go.
//
// Non-goals: who may read or write which run (the daemon decides), what a turn says (package runtrace), forgetting runs.
//
// Store is the promise, Disk keeps it in a directory.
//
// # A directory
//
//	lock            held by the process that has it open
//	log/            package seglog: every entry (run.go) of all runs; the truth
//	runs/A/R.jsonl  the lines of run R of agent A
//	index.sqlite    a row a run, and verdicts; written behind, made again from the log at need
//	synced          the position of the log up to which the run files are known to be on the disk
//
// # One append
//
// The run's lock is taken, the index given from the live position, the lines encoded, the entry queued in the log, the lock let go.
// When the block that holds the entry is synced, the log's committer makes the entry part of the run's durable state and wakes
// the caller, who writes the lines to the run's file, hands them to subscribers, and returns. Entries of a run reach its file in the
// order of the log: whoever comes first writes all that is due.
//
// When a write of the log fails, everything queued fails, and each run goes back to its durable state before it takes more (the
// log's epochs see to that). When a run's file cannot be written, its lines wait in memory, and the run takes no more until they
// are written.
//
// # Recovery
//
// Each entry holds the offset of its lines in the run's file and the CRC of what stands before them. Open reads the log from the lower
// of two marks, that of the index and that of the files, takes in what the index lacks, compares the files that had entries since
// the last sync, and after an unclean end the length of all others; what differs is written again from the log, in one pass.
//
// The files are synced all at once (syncfs) every four segments of the log, and at Close. Trace compares length and CRC of what
// it reads.
//
// # Memory
//
// A run is in memory while it is open, until the index has its end, and while somebody looks at it; its turns are not.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// A Store keeps runs. Its methods may be called at the same time. Where an error is none of those named, the store failed, and
// what was asked for may be kept or not: nothing was promised.
type Store interface {
	// Start begins a run. Where its id exists already and is the same agent's, whatever its status, existing is true and nothing
	// is written; where it is another's, the error is ErrOther. An empty StartedAt becomes now. Errors: ErrOther,
	// *runtrace.NameError, *runtrace.TooLargeError, *runtrace.InvalidError.
	Start(ctx context.Context, s *runtrace.Started) (existing bool, err error)
	// Append adds turns to an open run, all of them or none. The first gets the index base, which is how many turns the run had;
	// indices that came are written over. The turns are not changed. Errors: *Dropped, *runtrace.InvalidError.
	Append(ctx context.Context, id runtrace.ID, turns []runtrace.Turn) (base int, err error)
	// End ends a run. RunID and AgentID are set by the store, an empty EndedAt becomes now, an empty Status Completed. Errors: ErrNotFound, ErrEnded,
	// *runtrace.TooLargeError, *runtrace.InvalidError.
	End(ctx context.Context, id runtrace.ID, e *runtrace.Ended) error
	// Verdict keeps a policy's decision, any JSON of at most runtrace.MaxLine bytes, about a run that exists, ended or not; or
	// about none, with the zero ID. It does not wait for the disk: a turn that is appended later is never there without it.
	// Errors: ErrNotFound, *runtrace.InvalidError, *runtrace.TooLargeError.
	Verdict(ctx context.Context, id runtrace.ID, verdict json.RawMessage) error
	// Verdicts are those of a run, or with the zero ID those about none, in the order in which they came. Errors: ErrNotFound.
	Verdicts(ctx context.Context, id runtrace.ID) ([]json.RawMessage, error)
	// Find looks a run up by its id alone, which no two agents share. Errors: ErrNotFound.
	Find(ctx context.Context, run string) (Summary, error)
	// List gives an agent's runs, "" all, those that started last first.
	List(ctx context.Context, agent string) ([]Summary, error)
	// Trace reads the records of a run as they stand on the disk. Errors: ErrNotFound.
	Trace(ctx context.Context, id runtrace.ID, o *TraceOptions) (*Trace, error)
	// Subscribe follows a run from here on. Errors: ErrNotFound.
	Subscribe(ctx context.Context, id runtrace.ID, o *SubscribeOptions) (*Subscription, error)
	// Stats are totals since the store was opened.
	Stats() Stats
	// Health is nil while the store takes turns; else why it will not until it is opened again.
	Health() error
	// Close waits for what is under way and closes. Every method then fails with ErrClosed; subscriptions end.
	Close(ctx context.Context) error
}

var (
	// ErrNotFound says that there is no such run, or that it is another agent's.
	ErrNotFound = errors.New("no such run")
	// ErrOther says that a run id is another agent's. Whoever asked is told no more than that it cannot be had.
	ErrOther = errors.New("the run id is taken")
	// ErrEnded says that a run has ended already.
	ErrEnded = errors.New("the run has ended")
	// ErrClosed says that the store is closed.
	ErrClosed = errors.New("the store is closed")
)

// A Dropped says why turns were not taken.
type Dropped struct{ Reason Reason }

func (d *Dropped) Error() string { return fmt.Sprintf("turns dropped: %s", string(d.Reason)) }

// A Reason is why turns were not taken, in the words of the wire.
type Reason string

// The reasons.
const (
	RunNotFound  Reason = "run_not_found"
	RunTerminal  Reason = "run_terminal"   // it has ended
	RunTurnLimit Reason = "run_turn_limit" // it would have more than runtrace.MaxTurns
	TurnTooLarge Reason = "turn_too_large" // a line would be longer than runtrace.MaxLine
)

// A Summary is what a list says of a run.
type Summary struct {
	runtrace.ID
	Intent    string          `json:"intent"`
	StartedAt string          `json:"started_at"`         // RFC 3339
	EndedAt   string          `json:"ended_at,omitempty"` // "" while it is open
	Status    runtrace.Status `json:"status"`
	Turns     int             `json:"turn_count"`
}

// TraceOptions say which part of a trace is wanted. Nil and zero work.
type TraceOptions struct {
	From     int // the first record wanted; started is 0, turn n is n+1
	MaxBytes int // 0: no bound; else records are given while they fit together, at least one
}

// A Trace is a part of a run's trace.
type Trace struct {
	ID      runtrace.ID
	Records [][]byte // lines as they stand on the disk, without newline
	From    int      // which record is the first of them
	Next    int      // which record follows the last of them
	More    bool     // whether it is there already, and MaxBytes held it back
	Status  runtrace.Status
}

// Stats are totals since a store was opened, but for Files, which are of now.
type Stats struct {
	Files   int    // descriptors of run files
	Started uint64 // runs
	Turns   uint64 // acknowledged
	Ended   uint64
	Repairs uint64 // run files that were written again from the log
	Log     LogStats
}

// LogStats are those of the log beneath, where there is one.
type LogStats struct {
	Blocks, Records, Bytes uint64
	SyncSeconds            float64
}

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
