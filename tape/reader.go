package tape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is the longest line that a Reader takes, in bytes.
const MaxLine = 64 << 20

// readerBuffer is the size of one read, in bytes.
const readerBuffer = 64 << 10

// ReaderOptions say how a tape is read. Nil and zero work.
type ReaderOptions struct {
	// Tolerant drops a torn last line, which is what a crash leaves; Torn then says so. Otherwise it is ErrTorn.
	Tolerant bool
}

// A Reader reads a tape record by record. It holds one line and one record, never the tape. It is for one goroutine.
type Reader struct {
	name   string
	opts   ReaderOptions
	r      *bufio.Reader
	p      parser
	header *Header
	buf    []byte // of a line that is longer than the buffer of r
	line   int    // number of the line read last, from 1
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
	return t, t.readHeader(b)
}

func (t *Reader) readHeader(b []byte) error {
	typ, err := t.p.typ(b)
	switch {
	case err != nil && validJSON(b) != nil:
		return t.fail(fmt.Errorf("%w: %w", ErrNotJSON, err))
	case err != nil || typ != "header":
		return t.fail(ErrNoHeader)
	}
	if t.header, err = t.p.header(b); err != nil {
		return t.fail(err)
	}
	if v := t.header.Version; v > Version {
		return t.fail(fmt.Errorf("%w: version %d, and this reader knows up to %d", ErrVersion, v, Version))
	}
	if t.header.Version < 1 {
		return t.fail(fmt.Errorf("version %d: the first is 1", t.header.Version))
	}
	return nil
}

// Header returns the header.
func (t *Reader) Header() *Header { return t.header }

// Line returns the number of the line read last, from 1.
func (t *Reader) Line() int { return t.line }

// Torn reports whether a torn last line was dropped. It is known once the records have come to their end.
func (t *Reader) Torn() bool { return t.torn }

// Records yields the records in the order in which they stand. It can be ranged over once. A record is the caller's to
// keep. What does not hold is a *LoadError, the last thing yielded.
func (t *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for t.err == nil {
			rec, err := t.read()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(rec, err) {
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
	typ, err := t.p.typ(b)
	if err == nil && typ == "header" {
		return nil, t.fail(ErrSecondHeader)
	}
	rec, err := t.p.record(b)
	if err != nil {
		return nil, t.fail(err)
	}
	return rec, nil
}

// next returns the next line that is not blank, without its newline. It is valid until the call after.
func (t *Reader) next() ([]byte, error) {
	for {
		b, err := t.readLine()
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(b)) == 0 {
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
			t.err = err
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if b = bytes.TrimSpace(b); len(b) > 0 {
			return b, nil
		}
	}
}

// last is the way of a line that no newline ends: whole JSON is taken, for a writer of another kind may leave the last
// newline out; anything else is torn.
func (t *Reader) last(b []byte) ([]byte, error) {
	if b = bytes.TrimSpace(b); validJSON(b) == nil {
		return b, nil
	}
	if t.opts.Tolerant && t.header != nil {
		t.torn = true
		t.line--
		t.err = io.EOF
		return nil, io.EOF
	}
	if t.header == nil {
		return nil, t.fail(ErrNotJSON)
	}
	return nil, t.fail(ErrTorn)
}

// readLine returns the next line up to its newline; io.EOF comes with what follows the last one.
func (t *Reader) readLine() ([]byte, error) {
	b, err := t.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return b, err
	}
	t.buf = append(t.buf[:0], b...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(t.buf) > MaxLine {
			return nil, ErrLineTooLong
		}
		b, err = t.r.ReadSlice('\n')
		t.buf = append(t.buf, b...)
	}
	return t.buf, err
}

// fail ends the tape with what is wrong with the line read last.
func (t *Reader) fail(err error) error {
	t.err = &LoadError{Path: t.name, Line: t.line, Err: err}
	return t.err
}
