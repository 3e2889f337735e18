package deck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxHinted is how much output, in bytes, is drawn again for no more than a hint.
const maxHinted = 64 << 20

// Why screens that were asked for cannot be compared.
var (
	errNoTerminal = errors.New("the program had no terminal, so there is no screen to compare: leave out --tty")
	errNoScreens  = errors.New("the recording has no " + terminalName + "/, for it was made by an older tapedeck: leave out --tty, or record it again")
)

// A terminalSide is a run whose terminal is compared.
type terminalSide struct {
	dir      string // of the run
	finished bool
	seen     *fidelity.Showing // nil until it was looked at
}

// terminal is what the program of r was shown on.
func (r *Recording) terminal() *terminalSide {
	return &terminalSide{dir: r.Dir, finished: r.Finished()}
}

// exists reports whether a terminal was recorded.
func (t *terminalSide) exists() bool { return exists(filepath.Join(t.dir, terminalName)) }

// show returns what the terminal showed; nil where none was recorded.
func (t *terminalSide) show() (*fidelity.Showing, error) {
	if t.seen != nil {
		return t.seen, nil
	}
	c, err := openTerminal(filepath.Join(t.dir, terminalName), !t.finished)
	if c == nil || err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := tape.Open(filepath.Join(t.dir, tapeName), &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t.seen, err = showing(c, f.Records())
	return t.seen, err
}

// hinted is show for a hint: of what is soon drawn.
func (t *terminalSide) hinted() (*fidelity.Showing, error) {
	info, err := os.Stat(filepath.Join(t.dir, terminalName, cassette.OutputFile))
	if err != nil || info.Size() > maxHinted {
		return nil, gone(err)
	}
	return t.show()
}

// screens says how the terminals of two runs compare; nil where one of them had none and that does not matter.
func screens(tty *TTY, m *masks.Masker, gate bool, sides [2]*terminalSide) (*fidelity.Screens, error) {
	switch {
	case tty == nil && gate:
		return nil, errNoTerminal
	case tty == nil:
		return nil, nil
	case !sides[0].exists() && gate:
		return nil, fmt.Errorf("%s: %w", sides[0].dir, errNoScreens)
	}
	s := &fidelity.Screens{Gate: gate, Stream: tty.shownAs()}
	s.Mask = func(row string) string { return string(m.Mask(scrub.Renumber([]byte(row)))) }
	s.Load = func(side fidelity.Side) (*fidelity.Showing, error) {
		if !gate {
			return sides[side].hinted()
		}
		seen, err := sides[side].show()
		if seen == nil && err == nil {
			err = fmt.Errorf("%s has no %s/", sides[side].dir, terminalName)
		}
		return seen, err
	}
	return s, nil
}

// shownAs is which stream of the program holds what its terminal showed: stdout, or stderr where that alone is the terminal.
func (t *TTY) shownAs() int {
	if !t.has(1) && t.has(2) {
		return 2
	}
	return 1
}
