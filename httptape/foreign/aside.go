package foreign

import (
	"bufio"
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/wire"
)

// An aside holds the messages of a file between the two passes, in a file that has no name: they hold secrets.
type aside struct {
	f     *os.File
	w     *bufio.Writer
	end   int64
	slots []slot
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

// Write implements io.Writer, behind what was put aside.
func (a *aside) Write(b []byte) (int, error) {
	a.end += int64(len(b))
	return a.w.Write(b)
}

func (a *aside) put(m *message) error {
	s := slot{at: a.end}
	if !m.At.IsZero() {
		s.when = m.At.UnixNano()
	}
	_, err := a.Write(wire.Append(nil, m))
	s.n = a.end - s.at
	a.slots = append(a.slots, s)
	return err
}

// sorted puts the messages in order of their times; those of one time stay as they came. It reports whether that moved any.
func (a *aside) sorted() bool {
	by := func(x, y slot) int { return cmp.Compare(x.when, y.when) }
	if slices.IsSortedFunc(a.slots, by) {
		return false
	}
	slices.SortStableFunc(a.slots, by)
	return true
}

// each gives the messages in order.
func (a *aside) each(do func(*message) error) error {
	if err := a.w.Flush(); err != nil {
		return err
	}
	for _, s := range a.slots {
		b := make([]byte, s.n)
		if _, err := a.f.ReadAt(b, s.at); err != nil {
			return err
		}
		m := new(message)
		if err := wire.Decode(b, m); err != nil {
			return err
		}
		if s.when != 0 {
			m.At = time.Unix(0, s.when)
		}
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}
