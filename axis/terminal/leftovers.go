package terminal

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// Leftovers knows what a program has left on a terminal: whether the last line has an end, and the modes that it turned on
// and did not turn off. Everything that the terminal is sent must be written to it. It looks for control sequences alone
// and keeps no screen.
type Leftovers struct {
	mu    sync.Mutex
	lexer *vt.Lexer // nil before the first Write

	open    bool         // something was printed since the last line's end
	atStart bool         // the cursor is in the first column
	outside bool         // what open was when the alternate screen came
	modes   map[int]bool // private modes that are not as they are by default, and what they are
	keypad  bool         // application keypad
	styled  bool         // colours or attributes
	region  bool         // scrolling is bounded
	insert  bool         // characters move the others along
	keys    bool         // xterm's other keys
	pushed  int          // kitty's keyboard modes
}

// alternate are the modes that switch to the alternate screen.
var alternate = []int{47, 1047, 1049}

// defaults are the private modes that a program must turn back, and what they are by default: cursor keys, reversed
// screen, origin, wrapping, cursor, alternate screens, mouse reports and their encodings, focus, bracketed paste,
// synchronised output, reports of colours and sizes.
var defaults = map[int]bool{
	1: false, 5: false, 6: false, 7: true, 9: false, 25: true, 47: false, 1047: false, 1049: false,
	1000: false, 1001: false, 1002: false, 1003: false, 1004: false, 1005: false, 1006: false, 1015: false, 1016: false,
	2004: false, 2026: false, 2031: false, 2048: false,
}

// Write looks at what a terminal is sent.
func (l *Leftovers) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lexer == nil {
		l.lexer = vt.NewLexer(l.token)
	}
	return l.lexer.Write(p)
}

func (l *Leftovers) token(t *vt.Token) {
	switch {
	case t.Kind == vt.TokenText:
		l.open, l.atStart = true, false
	case t.Kind == vt.TokenControl && t.Final == '\n':
		l.open, l.atStart = false, true
	case t.Kind == vt.TokenControl && t.Final == '\r':
		l.atStart = true
	case t.Kind == vt.TokenCSI:
		l.control(t)
	case t.Kind != vt.TokenEscape || len(t.Inter) > 0:
	case t.Final == '=' || t.Final == '>':
		l.keypad = t.Final == '='
	case t.Final == 'c':
		l.reset()
		l.open, l.atStart = false, true
	}
}

func (l *Leftovers) reset() {
	l.modes, l.keypad, l.styled, l.region, l.insert, l.keys, l.pushed = nil, false, false, false, false, false, 0
}

// control takes a control sequence.
func (l *Leftovers) control(t *vt.Token) {
	param := func(i int) int { // -1 for none
		if i < len(t.Params) {
			return t.Params[i]
		}
		return -1
	}
	first := max(0, param(0))
	switch {
	case string(t.Inter) == "!" && t.Final == 'p':
		l.reset()
	case len(t.Inter) > 0:
	case t.Final == 'h' || t.Final == 'l':
		l.set(t, t.Final == 'h')
	case t.Final == 'm' && t.Prefix == '>':
		l.keys = len(t.Params) > 1 && param(1) != 0
	case t.Final == 'u' && t.Prefix == '>':
		l.pushed++
	case t.Final == 'u' && t.Prefix == '<':
		l.pushed = max(0, l.pushed-max(1, first))
	case t.Prefix != 0:
	case t.Final == 'm':
		l.styled = len(t.Params) > 1 || first > 0
	case t.Final == 'r':
		l.region, l.atStart = len(t.Params) > 1 || param(0) >= 0, true
	case t.Final == 'H' || t.Final == 'f':
		l.atStart = param(1) <= 1
	case t.Final == 'J' && (first > 1 || l.atStart), t.Final == 'K' && (first == 2 || l.atStart && first != 1):
		l.open = false
	}
}

// set turns modes on or off.
func (l *Leftovers) set(t *vt.Token, on bool) {
	for _, mode := range t.Params {
		byDefault, known := defaults[mode]
		if t.Prefix == 0 && mode == 4 {
			l.insert = on
		}
		if t.Prefix != '?' || !known || on != byDefault == l.differs(mode) {
			continue // known to be so already
		}
		if l.modes == nil {
			l.modes = make(map[int]bool)
		}
		if slices.Contains(alternate, mode) {
			l.switchScreen(on)
		}
		if l.modes[mode] = on; on == byDefault {
			delete(l.modes, mode)
		}
	}
}

func (l *Leftovers) differs(mode int) bool { _, ok := l.modes[mode]; return ok }

// switchScreen keeps what is known of the last line of the other screen, which comes back with that.
func (l *Leftovers) switchScreen(on bool) {
	if on {
		l.outside = l.open
		return
	}
	l.open = l.outside
}

// OpenLine reports whether the terminal's last line has no end yet.
func (l *Leftovers) OpenLine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Undo returns the control sequences that put back what the program turned on and did not turn off, as a program that was
// killed cannot: nothing where it left nothing on. It is to be written to the terminal and here.
func (l *Leftovers) Undo() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out bytes.Buffer
	if l.pushed > 0 {
		fmt.Fprintf(&out, "\x1b[<%du", l.pushed)
	}
	for _, was := range []struct {
		on   bool
		undo string
	}{
		{l.keys, "\x1b[>4;0m"}, {l.keypad, "\x1b>"}, {l.insert, "\x1b[4l"}, {l.styled, "\x1b[0m"},
		{l.region, "\x1b7\x1b[r\x1b8"}, // which moves the cursor
	} {
		if was.on {
			out.WriteString(was.undo)
		}
	}
	var left []int
	for mode := range l.modes {
		left = append(left, mode)
	}
	slices.Sort(left) // the alternate screen is left before the modes with higher numbers, which both screens share
	for _, mode := range left {
		fmt.Fprintf(&out, "\x1b[?%d%c", mode, map[bool]byte{true: 'h', false: 'l'}[defaults[mode]])
	}
	return out.Bytes()
}
