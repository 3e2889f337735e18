package foreign

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// lines reads lines of at most MaxData bytes.
type lines struct {
	r    *bufio.Reader
	n    int    // of the line that was read last, from 1
	long []byte // of a line that is longer than r's buffer
	torn bool   // the last line has no end
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line without its end, valid until the next call; io.EOF after the last.
func (l *lines) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		b, err := l.r.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			l.n++
			return trimEnd(b), nil
		}
		if len(l.long)+len(b) > MaxData {
			l.n++
			return nil, fmt.Errorf("a line of more than %d MiB", MaxData>>20)
		}
		l.long = append(l.long, b...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil:
			l.n++
			return trimEnd(l.long), nil
		case errors.Is(err, io.EOF) && len(l.long) > 0:
			l.n++
			l.torn = true
			return trimEnd(l.long), nil
		}
		return nil, err
	}
}

func trimEnd(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}
