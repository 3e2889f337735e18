package terminal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/tapedeck-dev/tapedeck/internal/stopread"
)

// Size is the size of a terminal in characters and, where it tells, in pixels.
type Size struct {
	Rows, Cols    int
	Width, Height int // pixels; 0 for unknown
}

// defaultSize is what a program is told that is given a terminal where the caller has none.
var defaultSize = Size{Rows: 24, Cols: 80}

// OrDefault is s, or where that is none the size of a terminal that has none: 24 by 80.
func (s Size) OrDefault() Size {
	if s.Rows == 0 || s.Cols == 0 {
		return defaultSize
	}
	return s
}

// A Mode says when a program gets a terminal.
type Mode uint8

// The modes.
const (
	Auto Mode = iota // for each of the streams that are a terminal of the caller
	On               // for all three streams
	Off              // never
)

// ParseMode reads "auto", "on" or "off".
func ParseMode(s string) (Mode, error) {
	switch s {
	case "", "auto":
		return Auto, nil
	case "on":
		return On, nil
	case "off":
		return Off, nil
	}
	return 0, fmt.Errorf("terminal mode %q: want auto, on or off", s)
}

// Streams returns which of the caller's stdin, stdout and stderr (any of which may be something else than a file) the
// program shall see as its terminal.
func (m Mode) Streams(std [3]any) []int {
	var out []int
	for i, v := range std {
		f, ok := v.(*os.File)
		if m == On || m == Auto && ok && term.IsTerminal(int(f.Fd())) {
			out = append(out, i)
		}
	}
	return out
}

// A PTY is a pseudo-terminal: the program gets Slave, the recorder reads and writes Master.
type PTY struct {
	Master, Slave *os.File
}

// Open makes a pseudo-terminal of the given size; without rows or columns it is 24 by 80.
func Open(size Size) (*PTY, error) {
	size = size.OrDefault()
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("no pseudo-terminal: %w", err)
	}
	p := &PTY{Master: master, Slave: slave}
	if err := p.Resize(size); err != nil {
		return nil, errors.Join(err, master.Close(), slave.Close())
	}
	return p, nil
}

// Resize tells the program a new size. A size that no terminal can have is an error.
func (p *PTY) Resize(s Size) error {
	if err := s.check(); err != nil {
		return err
	}
	return pty.Setsize(p.Slave, &pty.Winsize{Rows: uint16(s.Rows), Cols: uint16(s.Cols), X: uint16(s.Width), Y: uint16(s.Height)})
}

// check wants a size that a terminal can have.
func (s Size) check() error {
	for _, n := range []int{s.Rows, s.Cols, s.Width, s.Height} {
		if n < 0 || n > math.MaxUint16 {
			return fmt.Errorf("terminal of %d by %d characters, %d by %d pixels: want 0 to %d of each",
				s.Rows, s.Cols, s.Width, s.Height, math.MaxUint16)
		}
	}
	return nil
}

// Host returns the caller's terminal among its streams and its size, or nil where none of them is one.
func Host(std [3]any) (*os.File, Size) {
	for _, v := range std {
		f, ok := v.(*os.File)
		if !ok || !term.IsTerminal(int(f.Fd())) {
			continue
		}
		if size, ok := sizeOf(f); ok {
			return f, size
		}
		return f, defaultSize
	}
	return nil, Size{}
}

// sizeOf returns the size of a terminal, or false where it has none, as a serial line.
func sizeOf(f *os.File) (Size, bool) {
	w, err := pty.GetsizeFull(f)
	if err != nil || w.Rows == 0 || w.Cols == 0 {
		return Size{}, false
	}
	return Size{Rows: int(w.Rows), Cols: int(w.Cols), Width: int(w.X), Height: int(w.Y)}, true
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Output reads what the program writes until nobody can write any more. Closing it closes Master.
//
// An EIO says that the last of the program's side is closed, and is believed when it comes twice: the kernel looks whether
// bytes have come, then whether the other side is closed, and between the two looks (where the reader is held up there) the
// last bytes may come and the side be closed. They are there for the next read.
func (p *PTY) Output() io.ReadCloser { return &output{master: p.Master} }

type output struct {
	master io.ReadCloser
	closed bool // EIO was the last that was said
}

func (o *output) Read(b []byte) (int, error) {
	for {
		n, err := o.master.Read(b)
		if n > 0 || o.closed || !errors.Is(err, syscall.EIO) {
			o.closed = false
			return n, err
		}
		o.closed = true
	}
}

func (o *output) Close() error { return o.master.Close() }

// ReadKeys gives each what is typed on the caller's terminal, as it comes, from a goroutine of its own, until stop is called,
// which waits for it, or the terminal has ended, which gives nothing once. What is given is valid during the call. A nil Caller, and one
// without keys, gives nothing at all.
func (c *Caller) ReadKeys(each func([]byte)) (stop func(), err error) {
	if c == nil || c.Keys == nil {
		return func() {}, nil
	}
	r, err := stopread.New(c.Keys)
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 256)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				each(buf[:n])
			}
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					each(nil)
				}
				return
			}
		}
	})
	return func() { r.Stop(); reading.Wait() }, nil
}
