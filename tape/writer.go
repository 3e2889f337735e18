package tape

import (
	"fmt"
	"io"
)

const (
	// MaxLine is the longest line, in bytes with its newline, that a Reader takes and a Writer writes.
	MaxLine = 64 << 20

	// writerBuffer is how many bytes a Writer gathers before it hands them on.
	writerBuffer = 64 << 10

	// keepBuffer is the largest buffer, in bytes, that is kept for the next line: one huge record must not stay.
	keepBuffer = 1 << 20
)

// A Writer writes a tape. It holds the records that fit its buffer of 64 KiB, and hands on whole lines only. It is for
// one goroutine; a Recorder is for many.
//
// The first failure of the underlying writer sticks: what it took of a line cannot be known, and a record behind half a
// line would make the tape unreadable.
type Writer struct {
	w    io.Writer
	c    codec // its buf holds the lines that were not handed on yet
	line line
	err  error
}

// NewWriter hands the header to w at once, so that a tape is never found without one, and returns a writer of the
// records that follow. A zero h.Version is Version.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	head := *h
	if head.Version == 0 {
		head.Version = Version
	}
	t := &Writer{w: w}
	t.line = line{typ: "header", header: &head}
	if err := t.append(head.Extra); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	t.line = line{typ: "record"}
	if err := t.Flush(); err != nil {
		return nil, err
	}
	return t, nil
}

// Append writes r as it stands, its Seq too. A record that has no form on a tape is refused and leaves the tape as it
// was: one without a kind, with JSON that is none, or longer than MaxLine (ErrLineTooLong).
func (t *Writer) Append(r *Record) error {
	if t.err != nil {
		return t.err
	}
	t.line.record = r
	err := t.append(r.Extra)
	t.line.record = nil
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if len(t.c.buf) >= writerBuffer {
		return t.Flush()
	}
	return nil
}

// append adds the line to the buffer, or nothing.
func (t *Writer) append(extra []Field) error {
	start := len(t.c.buf)
	t.c.err = nil
	t.c.writeLine(&t.line, extra)
	t.c.buf = append(t.c.buf, '\n')
	err := t.c.err
	if err == nil && len(t.c.buf)-start > MaxLine {
		err = ErrLineTooLong
	}
	if err != nil {
		t.c.buf = t.c.buf[:start]
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
	t.c.buf = t.c.buf[:0]
	if cap(t.c.buf) > keepBuffer {
		t.c.buf = nil
	}
	return t.err
}
