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
	Intent    string
	StartedAt string // RFC 3339
	EndedAt   string // "" while it is open
	Status    runtrace.Status
	Turns     int
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

// Stats are totals since a store was opened, but for Open and Files, which are of now.
type Stats struct {
	Open    int    // runs that are in progress
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
	QueuedBytes            int
}
