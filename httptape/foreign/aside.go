package foreign

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
)

// An aside holds the messages of a file between the two passes, in a file that has no name: they hold secrets.
type aside struct {
	f     *os.File
	w     *bufio.Writer
	end   int64
	slots []slot
	buf   []byte
}

// A slot is where a message lies.
type slot struct {
	when  int64 // by which messages are put in order: nanoseconds since 1970, 0 where none is known
	at, n int64
}

func newAside() (*aside, error) {
	f, err := bare.UnnamedFile()
	if err != nil {
		return nil, err
	}
	return &aside{f: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

func (a *aside) close() error { return a.f.Close() }

func (a *aside) put(m *message) error {
	a.buf = m.appendTo(a.buf[:0])
	s := slot{at: a.end, n: int64(len(a.buf))}
	if !m.at.IsZero() {
		s.when = m.at.UnixNano()
	}
	a.slots, a.end = append(a.slots, s), a.end+s.n
	_, err := a.w.Write(a.buf)
	if cap(a.buf) > keepBuffer {
		a.buf = nil
	}
	return err
}

// keepBuffer is the largest buffer, in bytes, that is kept for the next message: one huge message must not stay.
const keepBuffer = 4 << 20

// sorted puts the messages in order of their times; those of one time stay as they came. It reports whether that moved any.
func (a *aside) sorted() bool {
	by := func(x, y slot) int { return cmp.Compare(x.when, y.when) }
	if slices.IsSortedFunc(a.slots, by) {
		return false
	}
	slices.SortStableFunc(a.slots, by)
	return true
}

// each gives the messages in order. A message is valid until do returns.
func (a *aside) each(do func(*message) error) error {
	if err := a.w.Flush(); err != nil {
		return err
	}
	for _, s := range a.slots {
		a.buf = slices.Grow(a.buf[:0], int(s.n))[:s.n]
		if _, err := io.ReadFull(io.NewSectionReader(a.f, s.at, s.n), a.buf); err != nil {
			return err
		}
		m, err := readMessage(a.buf)
		if err != nil {
			return err
		}
		if err := do(m); err != nil {
			return err
		}
		if cap(a.buf) > keepBuffer {
			a.buf = nil
		}
	}
	return nil
}
