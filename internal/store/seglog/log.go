package seglog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
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
	FS       faultfs.FS   // nil: the machine's
	Logger   *slog.Logger // nil: silent
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
	dir string
	o   Options
}

// Open opens the log in dir, which it makes if need be, and brings its end in order: the package comment says how. The
// caller sees to it that no other process has it open. The error is a *DamageError where acknowledged records are missing
// or changed in the last segment; in earlier ones Records finds that.
func Open(dir string, o *Options) (*Log, error) { return nil, errors.ErrUnsupported }

// Epoch is the epoch of appends now. It begins at 1.
func (l *Log) Epoch() Epoch { return 0 }

// Append queues a copy of record, behind everything that was queued before. It waits while the queue is full, until ctx is
// done. On an error nothing is queued and done is never called.
//
// Done is called once: with the record's position, when it and everything before it is on the disk; or with an error, when
// it is not and will not be, except after ErrFailed, when nobody knows. Calls of done come one after another in the order of
// the queue, from the committer, which writes nothing meanwhile: a done that takes long delays everybody, and one that waits
// for another append waits for ever. Done must not call Append.
//
// When a write fails (a full disk), all that is queued fails, and a new epoch begins, in which the log takes appends again.
// An append whose epoch is not the log's is refused with ErrEpoch: it may have been built on what has just failed (the next
// number of a series, say). So: lock, take what was last acknowledged and Epoch, once; then append with that epoch until
// ErrEpoch or a failed done says to begin again. Epoch 0 means any.
func (l *Log) Append(ctx context.Context, epoch Epoch, record []byte, done func(Pos, error)) error {
	return errors.ErrUnsupported
}

// AppendWait appends a record in any epoch and returns when it is on the disk. When ctx ends first, the record may still get
// there.
func (l *Log) AppendWait(ctx context.Context, record []byte) (Pos, error) {
	return 0, errors.ErrUnsupported
}

// End is the position that the next acknowledged record gets: every record before it is on the disk.
func (l *Log) End() Pos { return 0 }

// Records are the acknowledged records from a position on (0 and 1: all), up to the End at the time when the loop begins.
// Appends go on meanwhile. An error (a *DamageError, one of reading) ends the loop.
func (l *Log) Records(from Pos) iter.Seq2[Record, error] {
	return func(func(Record, error) bool) {}
}

// Stats are the totals up to now.
func (l *Log) Stats() Stats { return Stats{} }

// Close takes no more appends, brings to the disk what is queued, and closes the files. When ctx ends first it returns its
// error, and the committer goes on in the background.
func (l *Log) Close(ctx context.Context) error { return errors.ErrUnsupported }
