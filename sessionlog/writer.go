package sessionlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

var (
	// ErrList is wrapped by the refusal to append to a log that is one list.
	ErrList = errors.New("the log is one list, to which no line can be appended")
	// ErrShrunk is wrapped where somebody else made the log shorter while it was written.
	ErrShrunk = errors.New("the log became shorter while it was written")
	// ErrSeq is wrapped where the log holds the highest seq that there is.
	ErrSeq = errors.New("no seq is left")
)

// WriterOptions say how a log is written. Nil and zero work.
type WriterOptions struct {
	// Sync brings every line to the disk before Append returns. The default survives the death of the process alone.
	Sync bool
}

// A Stamp is what an envelope of ours has behind its event. Nil and zero are no stamp.
type Stamp struct {
	G   uint64 // the recorder's global ordinal
	TMS *int64 // milliseconds since the recording began
}

// A Writer appends to a log. It is for many goroutines; several writers, of several processes too, may append to one log.
//
// Seq is given and the line written under one lock, which is the file's and lasts for one Append: a line is never interleaved
// with another, and seq goes on behind whatever stands there. What a crash left behind the last whole entry is put aside
// first; see Repair.
type Writer struct {
	path string
	opts WriterOptions

	mu      sync.Mutex // over everything below
	lock    *fileLock
	f       logFile
	end     int64 // how far the log was looked at
	order   Order
	lines   int  // newlines in it
	open    bool // no newline stands at its end
	buf     []byte
	repairs []Repair
	err     error // what broke the writer for good

	syncing sync.Mutex // over synced; taken before mu
	synced  int64      // how far the log is on the disk
}

// logFile is what a Writer needs of an *os.File.
type logFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// A Repair is a torn end that was put aside.
type Repair struct {
	Line   int    // where it began, from 1
	Offset int64  // the same in bytes
	Length int64  // in bytes
	Side   string // the file that holds its bytes now
}

// OpenWriter opens the log at path for appending, and makes it where it is not there, with mode 0600. It reads the log once, so
// that seq goes on behind the highest one; entries without a seq count as one each where none has one. The error is a *LoadError
// where the log cannot be read, which wraps ErrList for one that is a list.
func OpenWriter(path string, o *WriterOptions) (*Writer, error) {
	w := &Writer{path: path}
	if o != nil {
		w.opts = *o
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	w.f, w.lock = f, newFileLock(f)
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// begin looks at the log as it stands. Its name, which may be new, comes to the disk.
func (w *Writer) begin() error {
	if err := w.locked(func() error { return nil }); err != nil {
		return err
	}
	if !w.opts.Sync {
		return nil
	}
	return durable.SyncDir(filepath.Dir(w.path))
}

// Append writes e as the next line and returns its seq. A failure leaves the log as it was: an *EventError for an event that
// has no form, ErrLineTooLong, or that of the system.
func (w *Writer) Append(e Event, s *Stamp) (uint64, error) {
	return w.append(s, func(dst []byte) ([]byte, error) { return AppendEvent(dst, e) })
}

// AppendRaw is Append for an event as it stands, whose bytes are kept but for line ends between its tokens.
func (w *Writer) AppendRaw(event []byte, s *Stamp) (uint64, error) {
	if kind, err := kindOf(event); err != nil {
		return 0, &EventError{EventKind: kind, Err: err}
	}
	return w.append(s, func(dst []byte) ([]byte, error) { return jsonscan.AppendLine(dst, event), nil })
}

func (w *Writer) append(s *Stamp, event func([]byte) ([]byte, error)) (uint64, error) {
	w.mu.Lock()
	var seq uint64
	err := w.locked(func() error {
		seq = w.order.Next()
		return w.write(seq, s, event)
	})
	end := w.end
	w.mu.Unlock()
	if err == nil && w.opts.Sync {
		err = w.sync(end)
	}
	return seq, err
}

// locked does something while no other writer does, after what they wrote since was read.
func (w *Writer) locked(do func() error) error {
	if w.err != nil {
		return w.err
	}
	if err := w.lock.lock(); err != nil {
		return fmt.Errorf("lock %s: %w", w.path, err)
	}
	err := w.catchUp()
	if err == nil {
		err = do()
	}
	return errors.Join(err, w.lock.unlock())
}

// write writes one line with one call. Where that fails half way, the half is taken away again.
func (w *Writer) write(seq uint64, s *Stamp, event func([]byte) ([]byte, error)) error {
	if w.order.full {
		return fmt.Errorf("append to %s: %w", w.path, ErrSeq)
	}
	buf := w.buf[:0]
	if w.open {
		buf = append(buf, '\n')
	}
	start := len(buf)
	buf, err := appendEnvelope(buf, seq, s, event)
	if err != nil {
		return err
	}
	buf = append(buf, '\n')
	if w.buf = buf; cap(buf) > keepBuffer {
		w.buf = nil
	}
	if len(buf)-start > MaxEntry {
		return fmt.Errorf("append to %s: %w", w.path, ErrLineTooLong)
	}
	if n, err := w.f.Write(buf); err != nil || n < len(buf) {
		return w.undo(errors.Join(err, shortWrite(n, len(buf))))
	}
	w.end += int64(len(buf))
	w.lines += 1 + start
	w.open = false
	w.order.see(&Entry{Seq: seq, HasSeq: true})
	return nil
}

// keepBuffer is the largest buffer, in bytes, that is kept for the next line.
const keepBuffer = 1 << 20

func shortWrite(n, want int) error {
	if n < want {
		return io.ErrShortWrite
	}
	return nil
}

// undo takes away what a failed write left.
func (w *Writer) undo(err error) error {
	err = fmt.Errorf("append to %s: %w", w.path, err)
	if cut := w.f.Truncate(w.end); cut != nil {
		// The next one who opens the log puts it aside.
		w.err = errors.Join(err, cut)
		return w.err
	}
	return err
}

// sync brings the log to the disk as far as end, once for all who wait.
func (w *Writer) sync(end int64) error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	if w.synced >= end {
		return nil
	}
	w.mu.Lock()
	now, err := w.end, w.err
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		// What the disk has is unknown from here on: a later fsync would not say.
		w.mu.Lock()
		w.err = fmt.Errorf("sync %s: %w", w.path, err)
		err = w.err
		w.mu.Unlock()
		return err
	}
	w.synced = now
	return nil
}

// Repairs lists the torn ends that were put aside since the writer was opened.
func (w *Writer) Repairs() []Repair {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Repair(nil), w.repairs...)
}

var errClosed = errors.New("the writer is closed")

// Close closes the log.
func (w *Writer) Close() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errClosed
	return errors.Join(w.f.Close(), w.lock.close())
}

// AppendEnvelope appends the line of an event, without a newline: {"seq":…,"event":{…}} and, behind the event, g and t_ms where s
// has them. The error is that of AppendEvent; dst is then as it was.
func AppendEnvelope(dst []byte, seq uint64, e Event, s *Stamp) ([]byte, error) {
	return appendEnvelope(dst, seq, s, func(dst []byte) ([]byte, error) { return AppendEvent(dst, e) })
}

func appendEnvelope(dst []byte, seq uint64, s *Stamp, event func([]byte) ([]byte, error)) ([]byte, error) {
	was := dst
	dst = appendNumber(append(dst, `{"seq":`...), seq)
	dst, err := event(append(dst, `,"event":`...))
	if err != nil {
		return was, err
	}
	if s != nil && s.G != 0 {
		dst = appendNumber(append(dst, `,"g":`...), s.G)
	}
	if s != nil && s.TMS != nil {
		dst = appendNumber(append(dst, `,"t_ms":`...), *s.TMS)
	}
	return append(dst, '}'), nil
}
