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

// Lines cuts what it reads into lines. It holds one line, and at most limit bytes of it. It is for one goroutine.
type Lines struct {
	r      io.Reader
	limit  int
	buf    []byte
	i, n   int // of buf, what was read and not yet given
	at     int64
	offset int64
	line   int
	torn   bool
	full   bool // the last read filled the buffer
	err    error
}

// NewLines returns a reader of the lines of r, which are at most limit bytes long with their newline.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{r: r, limit: limit, buf: make([]byte, min(firstBuffer, limit+1))}
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
			l.offset = l.at
			return nil, l.long()
		}
		if l.err != nil {
			return l.rest()
		}
		l.fill()
		seen += l.i
	}
}

// take gives the bytes until end.
func (l *Lines) take(end int) ([]byte, error) {
	b := l.buf[l.i:end]
	l.line++
	l.offset = l.at
	if len(b) > l.limit {
		return nil, l.long()
	}
	l.i = end
	l.at += int64(len(b))
	return b, nil
}

func (l *Lines) long() error {
	l.err = &LongLineError{Line: l.line, Offset: l.offset, Limit: l.limit}
	l.i, l.n = 0, 0
	return l.err
}

// rest gives what stands behind the last newline, once.
func (l *Lines) rest() ([]byte, error) {
	if l.i == l.n || !errors.Is(l.err, io.EOF) {
		return nil, l.err
	}
	l.torn = true
	return l.take(l.n)
}

// fill reads on. The line that has begun moves to the front of the buffer, which grows where it is full.
func (l *Lines) fill() {
	if l.i > 0 {
		from := l.buf[l.i:l.n]
		if len(l.buf) > keepBuffer && len(from) < linesBuffer {
			l.buf = make([]byte, min(linesBuffer, l.limit+1))
		}
		l.n = copy(l.buf, from)
		l.i = 0
	}
	if l.n == len(l.buf) || l.full && len(l.buf) < linesBuffer {
		grown := make([]byte, min(2*len(l.buf), l.limit+1))
		copy(grown, l.buf)
		l.buf = grown
	}
	for range maxEmptyReads {
		k, err := l.r.Read(l.buf[l.n:])
		l.n += k
		l.full = l.n == len(l.buf)
		if l.err = err; k > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

const maxEmptyReads = 100

// Line returns the number of the line that Next gave last, from 1.
func (l *Lines) Line() int { return l.line }

// Offset returns where that line begins, in bytes.
func (l *Lines) Offset() int64 { return l.offset }

// Torn reports whether no newline ended that line: it is the last one.
func (l *Lines) Torn() bool { return l.torn }
