package terminal

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Leftovers knows what a program has left on a terminal: whether the last line has an end, and the modes that it turned on
// and did not turn off. Everything that the terminal is sent must be written to it. It looks for control sequences alone
// and keeps no screen.
type Leftovers struct {
	mu    sync.Mutex
	state parserState
	seq   []byte // of the control sequence so far, without its introducer; bounded by maxSequence

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

type parserState uint8

const (
	ground    parserState = iota
	escape                // after ESC
	csi                   // in a control sequence
	text                  // in a string: a title, a palette, a picture
	textEsc               // after ESC in a string
	nextPlain             // the next byte belongs to what came before
)

const maxSequence = 64 // bytes; none that counts here is as long

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
	for _, b := range p {
		l.put(b)
	}
	return len(p), nil
}

func (l *Leftovers) put(b byte) {
	switch l.state {
	case ground:
		l.plain(b)
	case escape:
		l.escape(b)
	case csi:
		switch {
		case b >= 0x40 && b <= 0x7e:
			l.state = ground
			l.control(b)
		case b == 0x1b:
			l.state = escape
		case len(l.seq) < maxSequence:
			l.seq = append(l.seq, b)
		}
	case text:
		switch b {
		case 0x07:
			l.state = ground
		case 0x1b:
			l.state = textEsc
		}
	case textEsc:
		if l.state = ground; b != '\\' {
			l.escape(b)
		}
	case nextPlain:
		l.state = ground
	}
}

func (l *Leftovers) plain(b byte) {
	switch {
	case b == 0x1b:
		l.state = escape
	case b == '\n':
		l.open, l.atStart = false, true
	case b == '\r':
		l.atStart = true
	case b >= 0x20 && b != 0x7f:
		l.open, l.atStart = true, false
	}
}

func (l *Leftovers) escape(b byte) {
	l.state = ground
	switch b {
	case '[':
		l.state, l.seq = csi, l.seq[:0]
	case ']', 'P', '_', '^', 'X':
		l.state = text
	case '(', ')', '*', '+', '#', '%', ' ':
		l.state = nextPlain
	case '=', '>':
		l.keypad = b == '='
	case 'c':
		l.reset()
		l.open, l.atStart = false, true
	}
}

func (l *Leftovers) reset() {
	l.modes, l.keypad, l.styled, l.region, l.insert, l.keys, l.pushed = nil, false, false, false, false, false, 0
}

// control takes a whole control sequence that ends in b.
func (l *Leftovers) control(b byte) {
	seq := string(l.seq)
	switch {
	case b == 'h' || b == 'l':
		l.set(seq, b == 'h')
	case b == 'm' && strings.HasPrefix(seq, ">"):
		l.keys = strings.Contains(seq, ";") && !strings.HasSuffix(seq, ";0")
	case b == 'm' && !strings.HasPrefix(seq, "?"):
		l.styled = seq != "" && seq != "0"
	case b == 'u' && strings.HasPrefix(seq, ">"):
		l.pushed++
	case b == 'u' && strings.HasPrefix(seq, "<"):
		n, err := strconv.Atoi(seq[1:])
		if err != nil {
			n = 1
		}
		l.pushed = max(0, l.pushed-n)
	case b == 'r' && !strings.HasPrefix(seq, "?"):
		l.region, l.atStart = seq != "", true
	case b == 'p' && seq == "!":
		l.reset()
	case b == 'H' || b == 'f':
		_, col, _ := strings.Cut(seq, ";")
		l.atStart = col == "" || col == "1"
	case b == 'J' && (seq == "2" || seq == "3" || l.atStart), b == 'K' && (seq == "2" || l.atStart && seq != "1"):
		l.open = false
	}
}

func (l *Leftovers) set(seq string, on bool) {
	if seq == "4" {
		l.insert = on
	}
	if !strings.HasPrefix(seq, "?") {
		return
	}
	for p := range strings.SplitSeq(seq[1:], ";") {
		mode, err := strconv.Atoi(p)
		byDefault, known := defaults[mode]
		if err != nil || !known || on != byDefault == l.differs(mode) {
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
