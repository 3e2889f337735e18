package tape

import (
	"bufio"
	"io"
)

// writerBuffer is what a Writer holds back at most, in bytes, beside the record that it is given.
const writerBuffer = 64 << 10

// A Writer writes a tape. It never holds more than its buffer. It is for one goroutine; a Recorder is for many.
type Writer struct {
	w   *bufio.Writer
	buf []byte
	err error // the first failure, which every later call returns
}

// NewWriter writes the header and returns a writer of the records that follow. A zero h.Version is Version.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	t := &Writer{w: bufio.NewWriterSize(w, writerBuffer)}
	b, err := appendHeader(nil, h)
	if err != nil {
		return nil, err
	}
	t.write(append(b, '\n'))
	return t, t.err
}

// Append writes r as it stands, its Seq too. A record that has no JSON form is refused, and the tape goes on without it.
func (t *Writer) Append(r *Record) error {
	b, err := appendRecord(t.buf[:0], r)
	t.buf = b
	if cap(t.buf) > 16*writerBuffer {
		t.buf = nil // one huge record must not stay
	}
	if err != nil {
		return err
	}
	t.write(append(b, '\n'))
	return t.err
}

// Flush hands everything to the underlying writer.
func (t *Writer) Flush() error {
	if t.err == nil {
		t.err = t.w.Flush()
	}
	return t.err
}

func (t *Writer) write(b []byte) {
	if t.err == nil {
		_, t.err = t.w.Write(b)
	}
}
