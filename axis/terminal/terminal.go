package terminal

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// Size is the size of a terminal in characters.
type Size struct {
	Rows, Cols int
}

// defaultSize is what a program is told that is given a terminal where the caller has none.
var defaultSize = Size{Rows: 24, Cols: 80}

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

// Open makes a pseudo-terminal of the given size; a zero size is 24 by 80.
func Open(size Size) (*PTY, error) {
	if size == (Size{}) {
		size = defaultSize
	}
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
	if s.Rows < 0 || s.Cols < 0 || s.Rows > math.MaxUint16 || s.Cols > math.MaxUint16 {
		return fmt.Errorf("terminal of %d by %d characters: want 0 to %d of each", s.Rows, s.Cols, math.MaxUint16)
	}
	return pty.Setsize(p.Master, &pty.Winsize{Rows: uint16(s.Rows), Cols: uint16(s.Cols)})
}

// Host returns the caller's terminal among its streams and its size, or nil where none of them is one.
func Host(std [3]any) (*os.File, Size) {
	for _, v := range std {
		f, ok := v.(*os.File)
		if !ok || !term.IsTerminal(int(f.Fd())) {
			continue
		}
		cols, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || rows == 0 || cols == 0 {
			return f, defaultSize
		}
		return f, Size{Rows: rows, Cols: cols}
	}
	return nil, Size{}
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Raw puts the caller's terminal into raw mode, so that every key reaches the program's own, and returns what undoes
// that. For a file that is no terminal it does nothing.
func Raw(f *os.File) (restore func(), err error) {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return func() {}, nil
	}
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { term.Restore(int(f.Fd()), state) }, nil
}
