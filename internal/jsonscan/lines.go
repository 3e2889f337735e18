package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// linesBuffer is the size of the buffer that lines are cut in, in bytes. It begins with firstBuffer, for who reads a line alone,
// and a longer line makes it grow beyond.
const (
	linesBuffer = 256 << 10
	firstBuffer = 16 << 10
)

// A LongLineError says that a line, or an element of a Stream, is longer than its reader takes.
type LongLineError struct {
	Line   int   // from 1; 0 where lines are not counted
	Offset int64 // where it begins, in bytes
	Limit  int   // in bytes
}

func (e *LongLineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("the value at byte %d is longer than the limit of %d bytes", e.Offset+1, e.Limit)
	}
	return fmt.Sprintf("line %d is longer than the limit of %d bytes", e.Line, e.Limit)
}

// A window is the part of an input that is in memory.
type window struct {
	r     io.Reader
	limit int // bytes of a line or a value; the buffer has one more at most
	buf   []byte
	i, n  int   // of buf, where who reads stands, and where what was read ends
	base  int64 // the offset of buf[0]
	full  bool  // the last read filled the buffer
	end   error // of the reader
}

const maxEmptyReads = 100

// more reads on. What stands in the buffer from from on moves to its front; it grows where it is full. False is that nothing came, and end
// says why.
func (w *window) more(from int) bool {
	if from > 0 {
		rest := w.buf[from:w.n]
		if len(w.buf) > keepBuffer && len(rest) < linesBuffer {
			w.buf = make([]byte, min(linesBuffer, w.limit+1))
		}
		w.n = copy(w.buf, rest)
		w.i -= from
		w.base += int64(from)
	}
	if w.n == len(w.buf) || w.full && len(w.buf) < linesBuffer {
		grown := make([]byte, min(2*len(w.buf), w.limit+1))
		copy(grown, w.buf)
		w.buf = grown
	}
	for range maxEmptyReads {
		k, err := w.r.Read(w.buf[w.n:])
		w.n += k
		w.full = w.n == len(w.buf)
		if w.end = err; k > 0 || err != nil {
			return k > 0
		}
	}
	w.end = io.ErrNoProgress
	return false
}

// Lines cuts what it reads into lines. It holds one line, and at most limit bytes of it. It is for one goroutine.
type Lines struct {
	window
	offset int64
	line   int
	torn   bool
}

// NewLines returns a reader of the lines of r, which are at most limit bytes long with their newline.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{window: window{r: r, limit: limit, buf: make([]byte, min(firstBuffer, limit+1))}}
}

// Next returns the next line with its newline, valid until the next call. What stands behind the last newline comes as a line
// too, and Torn then says that nothing ends it. The error is io.EOF, a *LongLineError, or that of the reader, and stays.
func (l *Lines) Next() ([]byte, error) {
	seen := l.i
	for {
		if k := bytes.IndexByte(l.buf[seen:l.n], '\n'); k >= 0 {
			return l.take(seen + k + 1)
		}
		seen = l.n - l.i
		if seen > l.limit {
			l.line++
			l.offset = l.base + int64(l.i)
			return nil, l.long()
		}
		if l.end != nil {
			return l.rest()
		}
		l.more(l.i)
	}
}

// take gives the bytes until end.
func (l *Lines) take(end int) ([]byte, error) {
	b := l.buf[l.i:end]
	l.line++
	l.offset = l.base + int64(l.i)
	if len(b) > l.limit {
		return nil, l.long()
	}
	l.i = end
	return b, nil
}

func (l *Lines) long() error {
	l.end = &LongLineError{Line: l.line, Offset: l.offset, Limit: l.limit}
	l.i, l.n = 0, 0
	return l.end
}

// rest gives what stands behind the last newline, once.
func (l *Lines) rest() ([]byte, error) {
	if l.i == l.n || !errors.Is(l.end, io.EOF) {
		return nil, l.end
	}
	l.torn = true
	return l.take(l.n)
}

// Line returns the number of the line that Next gave last, from 1.
func (l *Lines) Line() int { return l.line }

// Offset returns where that line begins, in bytes.
func (l *Lines) Offset() int64 { return l.offset }

// Torn reports whether no newline ended that line: it is the last one.
func (l *Lines) Torn() bool { return l.torn }
