package cassette

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sort"
)

// The lines of a stream are in the order of time, so that a place in it is found by halving the file: no index is needed.

// seekTime sets f to its first line whose t_ms is at least ms.
func seekTime(f *os.File, s Stream, torn bool, ms int64) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := findLine(f, s, st.Size(), torn, func(t Timed) bool { return t.TMS >= ms })
	if err != nil {
		return err
	}
	_, err = f.Seek(at, io.SeekStart)
	return err
}

// findLine returns where the first line begins that is good; all lines behind a good one are. size where none is. torn: what is no
// JSON is good too.
func findLine(f io.ReaderAt, s Stream, size int64, torn bool, good func(Timed) bool) (int64, error) {
	var failed error
	low := sort.Search(int(size), func(i int) bool { // whether the first line that begins at i or behind it is good
		if failed != nil {
			return true
		}
		_, b, err := lineFrom(f, s, int64(i), size)
		if err != nil {
			failed = err
			return true
		}
		var t Timed
		if b == nil {
			return true
		}
		if err := decode(s.File(), 0, b, &t); err != nil {
			if !torn {
				failed = err
			}
			return true
		}
		return good(t)
	})
	if failed != nil {
		return 0, failed
	}
	at, _, err := lineFrom(f, s, int64(low), size)
	return at, err
}

// lineFrom returns the first line that begins at offset or behind it and is not blank, and where; nil where there is none.
func lineFrom(f io.ReaderAt, s Stream, offset, size int64) (int64, []byte, error) {
	at := max(offset-1, 0) // the newline before it, if it is one
	l := newLineReader(s.File(), io.NewSectionReader(f, at, size-at))
	var b []byte
	var err error
	if offset > 0 {
		_, err = l.read()
	}
	if err == nil {
		b, err = l.next()
	}
	if errors.Is(err, io.EOF) {
		return size, nil, nil
	}
	return at + l.Offset(), b, err
}

// lastLine returns the last line that is not blank, nil where there is none.
func lastLine(f io.ReaderAt, s Stream, size int64) ([]byte, error) {
	var tail []byte
	for at := size; at > 0; {
		n := min(at, 64<<10)
		at -= n
		block := make([]byte, n, int(n)+len(tail))
		if _, err := f.ReadAt(block, at); err != nil {
			return nil, err
		}
		tail = append(block, tail...)
		line := bytes.TrimSpace(tail)
		if len(line) == 0 {
			tail = nil // blanks, of which there may be any number
			continue
		}
		if i := bytes.LastIndexByte(line, '\n'); i >= 0 {
			return line[i+1:], nil
		}
		if len(line) > MaxLine {
			return nil, refuse(s.File(), 0, ErrTooLong, "a line has at most %d bytes", MaxLine)
		}
	}
	if line := bytes.TrimSpace(tail); len(line) > 0 {
		return line, nil
	}
	return nil, nil
}
