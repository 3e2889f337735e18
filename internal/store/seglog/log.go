package seglog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

// A Pos is the place of a record in a log: the first record is 1, and the next one is always one more. 0 is before the first.
type Pos uint64

// A Record is one record of a log, as it was appended.
type Record struct {
	Pos  Pos
	Data []byte // valid until the iterator goes on
}

// An Epoch counts how often appends failed while the log went on. See Log.Append.
type Epoch uint64

// Options say how a log is kept. Nil and zero work.
type Options struct {
	SegmentSize int64 // bytes after which a new file begins; 0 means 64 MiB. A block that is longer has a file of its own
	// MaxBlock bounds the bytes of one block, and so those that wait for the disk; 0 means 4 MiB. A record that is longer is
	// a block of its own. The log holds two blocks in memory: the one being written and the one that fills.
	MaxBlock int
	// Prepare has the next segment written with zeros while one is filled: twice the bytes go to the disk, and a sync waits for
	// no journal, which matters where others write to the same file system. A segment that was not prepared (the first one, that
	// of an earlier process) is left at an eighth of SegmentSize. When a write fails the space taken for it is given back.
	Prepare bool
	FS      faultfs.FS   // nil: the machine's
	Logger  *slog.Logger // nil: silent
	// Committed is called by the committer after each block is on the disk and before its done callbacks; it must be quick.
	Committed func(Batch)
	// Rotated is called by the committer when a new segment begins: every record before first is in files that are not
	// written again. It must be quick, and must not call the log.
	Rotated func(first Pos)
}

// A Batch is what one write and one sync brought to the disk.
type Batch struct {
	First   Pos
	Records int
	Bytes   int // the whole block
	Write   time.Duration
	Sync    time.Duration
}

// Stats are totals since Open.
type Stats struct {
	Blocks, Records, Bytes uint64
	Write, Sync            time.Duration
	Failed                 uint64 // appends whose done got an error
	Queued                 int    // bytes that wait for the disk now
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.SegmentSize <= 0 {
		d.SegmentSize = 64 << 20
	}
	if d.MaxBlock <= 0 {
		d.MaxBlock = 4 << 20
	}
	d.MaxBlock = min(d.MaxBlock, 1<<30) // a block's length has 32 bits
	if d.FS == nil {
		d.FS = faultfs.OS
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// MaxRecord is the longest record, in bytes.
const MaxRecord = 64 << 20

var (
	// ErrFailed is the error of every append after a sync failed, or after a failed write could not be undone. What had not
	// been acknowledged may be on the disk or not; the log must be closed and opened again.
	ErrFailed = errors.New("the log failed and takes nothing more: open it again")
	// ErrClosed is the error of every append after Close.
	ErrClosed = errors.New("the log is closed")
	// ErrEpoch is the error of an append that was built on appends which have failed.
	ErrEpoch = errors.New("earlier appends failed: begin again from what was acknowledged")
	// ErrTooLarge is the error of a record longer than MaxRecord.
	ErrTooLarge = fmt.Errorf("a record holds at most %d bytes", MaxRecord)
)

// A DamageError says where a log is not what was acknowledged.
type DamageError struct {
	File   string
	Offset int64 // bytes from the begin of the file
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("log damaged: %s at byte %d: %s", e.File, e.Offset, e.Reason)
}

// A Log is open for appends and reading. Its methods may be called at the same time. One goroutine, the committer, writes;
// Close ends it and waits for it.
type Log struct {
	dir     string
	o       Options
	fs      faultfs.FS
	writer  writer        // the committer's alone
	callers sync.Pool     // of AppendWait; not shared with other logs, whose tests may run in a bubble of synctest
	ended   chan struct{} // closed when the committer has ended

	mu       sync.Mutex // guards what follows
	arrived  sync.Cond  // filling is no longer empty, or the log is closing
	filling  *block
	spare    *block // empty, or nil while the committer has it
	waiting  []*waiter
	next     Pos // of the next append
	epoch    Epoch
	failed   error // what Append returns: ErrFailed with its cause
	closing  bool
	closeErr error
	segments []segmentInfo // all of them, the last one is being written
	durable  place         // what is acknowledged, or about to be
	stats    Stats
}

// A place is the end of what is on the disk.
type place struct {
	next Pos
	at   int64 // in the last segment
}

// Epoch is the epoch of appends now. It begins at 1.
func (l *Log) Epoch() Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// End is the position that the next acknowledged record gets: every record before it is on the disk.
func (l *Log) End() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable.next
}

// Stats are the totals up to now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Queued = len(l.filling.buf)
	return s
}

// Close takes no more appends, brings to the disk what is queued, and closes the files. When ctx ends first it returns its
// error, and the committer goes on in the background. After a failed sync it returns that; a second Close returns what the
// first did.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.arrived.Signal()
	l.mu.Unlock()
	select {
	case <-l.ended:
		return l.closeErr
	case <-ctx.Done():
		return fmt.Errorf("close the log: %w", context.Cause(ctx))
	}
}
