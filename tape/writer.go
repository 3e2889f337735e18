package tape

import (
	"fmt"
	"io"
	"sync"
)

const (
	// MaxLine is the longest line, in bytes with its newline, that a Reader takes and a Writer writes.
	MaxLine = 64 << 20

	// writerBuffer is how many bytes a Writer gathers before it hands them on.
	writerBuffer = 64 << 10

	// keepBuffer is the largest buffer, in bytes, that is kept for the next line: one huge record must not stay.
	keepBuffer = 1 << 20

	// roomyBuffer is how large a new buffer is, in bytes: most lines that fill it still fit.
	roomyBuffer = writerBuffer + 16<<10
)

// buffers are *[]byte that no Writer holds lines in, each empty and of at most keepBuffer bytes: most tapes are short, and made one
// after the other.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, roomyBuffer)
	return &b
}}

// A Writer writes a tape. It holds the records that fit its buffer of 64 KiB, and hands on whole lines only. It is for
// one goroutine; a Recorder is for many.
//
// The first failure of the underlying writer sticks: what it took of a line cannot be known, and a record behind half a
// line would make the tape unreadable.
type Writer struct {
	w   io.Writer
	c   codec   // its buf holds the lines that were not handed on yet
	buf *[]byte // of buffers: where c.buf began; nil where there are none
	err error
}

// NewWriter hands the header to w at once, so that a tape is never found without one, and returns a writer of the
// records that follow. A zero h.Version is Version.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	head := *h
	if head.Version == 0 {
		head.Version = Version
	}
	t := &Writer{w: w}
	start, _ := t.begin() // nothing has failed yet
	t.c.writeLine(&line{typ: "header", header: &head}, head.Extra)
	if err := t.end(start); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := t.Flush(); err != nil {
		return nil, err
	}
	return t, nil
}

// Append writes r as it stands, its Seq too. A record that has no form on a tape is refused and leaves the tape as it
// was: one without a kind, with JSON that is none, or longer than MaxLine (ErrLineTooLong).
func (t *Writer) Append(r *Record) error {
	start, err := t.begin()
	if err != nil {
		return err
	}
	t.c.writeLine(&line{typ: "record", record: r}, r.Extra)
	return t.appended(r.Seq, start)
}

// append is Append for a record without keys of others, whose kind is k. Nothing of k is kept: who makes one for its record alone need
// not allocate it.
func (t *Writer) append(r *Record, k Kind) error {
	start, err := t.begin()
	if err != nil {
		return err
	}
	t.c.writeRecord(r, k)
	return t.appended(r.Seq, start)
}

// appended ends the line of a record, and makes room where the buffer is full.
func (t *Writer) appended(seq uint64, start int) error {
	if err := t.end(start); err != nil {
		return fmt.Errorf("record %d: %w", seq, err)
	}
	if len(t.c.buf) >= writerBuffer {
		return t.Flush()
	}
	return nil
}

// begin returns where in the buffer the next line begins. The error is the underlying writer's.
func (t *Writer) begin() (start int, err error) {
	if t.err != nil {
		return 0, t.err
	}
	if t.buf == nil {
		t.buf = buffers.Get().(*[]byte)
		t.c.buf = *t.buf
	}
	return len(t.c.buf), nil
}

// end ends the line that begins at start, or takes it back: one that has no form, or is too long.
func (t *Writer) end(start int) error {
	t.c.buf = append(t.c.buf, '\n')
	err := t.c.err
	if err == nil && len(t.c.buf)-start > MaxLine {
		err = ErrLineTooLong
	}
	if err != nil {
		t.c.buf, t.c.err = t.c.buf[:start], nil
	}
	return err
}

// Flush hands everything that was appended to the underlying writer.
func (t *Writer) Flush() error {
	if t.err != nil || len(t.c.buf) == 0 {
		return t.err
	}
	n, err := t.w.Write(t.c.buf)
	if err == nil && n < len(t.c.buf) {
		err = io.ErrShortWrite
	}
	t.err = err
	if cap(t.c.buf) <= keepBuffer {
		*t.buf = t.c.buf[:0]
		buffers.Put(t.buf)
	}
	t.buf, t.c.buf = nil, nil
	return t.err
}
