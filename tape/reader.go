package tape

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// readerBuffer is the size of one read, in bytes.
const readerBuffer = 64 << 10

// ReaderOptions say how a tape is read. Nil and zero work.
type ReaderOptions struct {
	// Tolerant drops a torn last line, which is what a crash leaves; Torn then says so. The default is ErrTorn. A torn
	// header is an error either way.
	Tolerant bool
}

// A Reader reads a tape record by record. It holds one line and one record, never the tape. Order is not its business: it
// yields what stands there, with seq out of order too. It is for one goroutine.
type Reader struct {
	name   string
	opts   ReaderOptions
	r      *bufio.Reader
	p      parser
	header *Header
	buf    []byte // of a line that is longer than the buffer of r
	line   int    // number of the line read last, from 1
	at, to int64  // where it begins and ends
	torn   bool
	err    error // what ended the tape, io.EOF too
}

// NewReader reads the header of a tape; name stands for it in errors. The error is a *LoadError, or that of r.
func NewReader(r io.Reader, name string) (*Reader, error) { return NewReaderOptions(r, name, nil) }

// NewReaderOptions is NewReader with options.
func NewReaderOptions(r io.Reader, name string, o *ReaderOptions) (*Reader, error) {
	t := &Reader{name: name, r: bufio.NewReaderSize(r, readerBuffer)}
	if o != nil {
		t.opts = *o
	}
	b, err := t.next()
	if errors.Is(err, io.EOF) {
		t.line = 1
		return nil, t.fail(ErrEmpty)
	}
	if err != nil {
		return nil, err
	}
	if t.header, err = t.p.header(b); err != nil {
		return nil, t.fail(err)
	}
	return t, nil
}

// Header returns the header.
func (t *Reader) Header() *Header { return t.header }

// Line returns the number of the line read last, from 1. A torn line that was dropped is the one behind it.
func (t *Reader) Line() int { return t.line }

// Offset returns where the line read last begins, in bytes from the beginning of the tape.
func (t *Reader) Offset() int64 { return t.at }

// Torn reports whether a torn last line was dropped. It is known once the records have come to their end.
func (t *Reader) Torn() bool { return t.torn }

// Records yields the records in the order in which they stand. Ranging again goes on behind the record that was yielded
// last. A record is the caller's to keep. An error, which is a *LoadError or that of the underlying reader, is the last
// thing yielded.
func (t *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for t.err == nil {
			rec, err := t.read()
			if errors.Is(err, io.EOF) || !yield(rec, err) {
				return
			}
		}
	}
}

// read returns the next record, or what ends the tape.
func (t *Reader) read() (*Record, error) {
	b, err := t.next()
	if err != nil {
		return nil, err
	}
	rec, err := t.p.record(b)
	if err != nil {
		return nil, t.fail(err)
	}
	return rec, nil
}

// next returns the next line that is not blank. It is valid until the call after.
func (t *Reader) next() ([]byte, error) {
	for {
		b, err := t.readLine()
		t.at, t.to = t.to, t.to+int64(len(b))
		blank := len(trimSpace(b)) == 0
		if errors.Is(err, io.EOF) && blank {
			t.err = io.EOF
			return nil, io.EOF
		}
		t.line++
		switch {
		case errors.Is(err, io.EOF):
			return t.last(b)
		case errors.Is(err, ErrLineTooLong):
			return nil, t.fail(err)
		case err != nil:
			t.err = fmt.Errorf("%s: %w", t.name, err)
			return nil, t.err
		case !blank:
			return b, nil
		}
	}
}

// last is the way of a line that no newline ends: whole JSON is taken, for a writer of another kind may leave the last
// newline out; anything else is torn.
func (t *Reader) last(b []byte) ([]byte, error) {
	switch {
	case jsonscan.Valid(b) == nil:
		return b, nil
	case t.header == nil:
		return nil, t.fail(fmt.Errorf("%w, and nothing follows it", ErrNotJSON))
	case !t.opts.Tolerant:
		return nil, t.fail(ErrTorn)
	}
	t.torn = true
	t.line--
	t.err = io.EOF
	return nil, io.EOF
}

// readLine returns the next line with its newline; io.EOF comes with what stands behind the last newline.
func (t *Reader) readLine() ([]byte, error) {
	b, err := t.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return b, err
	}
	if cap(t.buf) > keepBuffer {
		t.buf = nil
	}
	t.buf = append(t.buf[:0], b...)
	for errors.Is(err, bufio.ErrBufferFull) {
		b, err = t.r.ReadSlice('\n')
		if len(t.buf)+len(b) > MaxLine {
			return nil, ErrLineTooLong
		}
		if need := len(t.buf) + len(b); need > cap(t.buf) {
			// Twice as much each time, and never more than a line may have: append's own steps would leave more behind.
			t.buf = append(make([]byte, 0, min(max(2*cap(t.buf), need), MaxLine)), t.buf...)
		}
		t.buf = append(t.buf, b...)
	}
	return t.buf, err
}

// fail ends the tape with what is wrong with the line read last.
func (t *Reader) fail(err error) error {
	t.err = &LoadError{Path: t.name, Line: t.line, Err: err}
	return t.err
}

// What a LoadError wraps.
var (
	// ErrEmpty says that the tape holds nothing, or blank lines alone.
	ErrEmpty = errors.New("the tape is empty: its first line must be a header")
	// ErrNoHeader says that the first line is something else, a record for one.
	ErrNoHeader = errors.New("the header is missing: the first line must be one")
	// ErrSecondHeader says that a header stands behind the first line.
	ErrSecondHeader = errors.New("a second header: only the first line is one")
	// ErrNotJSON says that a line is not JSON in UTF-8.
	ErrNotJSON = errors.New("the line is not JSON")
	// ErrMalformed says that a line is JSON and not what its type or kind demands: a key is missing, stands twice or has a
	// value of the wrong type. Where a digest is not 64 lowercase hex digits, cas.ErrName is wrapped beside it.
	ErrMalformed = errors.New("the line does not hold what it must")
	// ErrVersion says that the tape is of a newer version than Version. The message names both.
	ErrVersion = errors.New("the tape is too new")
	// ErrTorn says that the last line has no newline and is not JSON.
	ErrTorn = errors.New("the last line is torn: what wrote the tape was stopped in the middle of it")
	// ErrLineTooLong says that a line is longer than MaxLine.
	ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)
)

// A LoadError says where a tape does not hold, and wraps one of the errors above.
type LoadError struct {
	Path string // the tape, as it was named to the reader
	Line int    // from 1
	Err  error
}

// Error implements error.
func (e *LoadError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LoadError) Unwrap() error { return e.Err }

// StoreSuffix is what the directory of a tape's blobs has behind the tape's path.
const StoreSuffix = ".cas"

// A Tape is a tape on disk, opened for reading, with the blobs beside it.
type Tape struct {
	*Reader
	Store *cas.Dir
	f     *os.File
}

// Open opens the tape at path and reads its header. The blobs need not be there until one of them is read.
func Open(path string, o *ReaderOptions) (*Tape, error) {
	// A FIFO would keep its reader waiting for ever.
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReaderOptions(f, path, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	store, err := cas.OpenDir(path+StoreSuffix, nil)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Tape{Reader: r, Store: store, f: f}, nil
}

// Close closes the tape.
func (f *Tape) Close() error { return f.f.Close() }
