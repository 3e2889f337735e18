package cassette

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A quick is a screen that shows logs without reading all of them: of text, line ends and colours alone, only the last lines can
// be seen, on the screen or once it grows. What it leaves out could not be told from what the whole would have left: text, cursor,
// title and size. Colours of what is printed later may differ.
type quick struct {
	screen *vt.Screen
	above  int    // lines of the screen's scrollback
	tail   []byte // plain text that the screen has not seen, from a begin of a line on or where the last one began
	cut    bool   // the tail begins behind a line end: what was before it is left out
	state  plainState
}

// tailMax is how long the tail grows before it is cut, in bytes.
const tailMax = 256 << 10

// Write shows p, sooner or later.
func (q *quick) Write(p []byte) {
	for len(p) > 0 {
		n := 0
		if len(q.tail) > 0 || q.ready() {
			n = q.state.plain(p)
			q.keep(p[:n])
		}
		if n < len(p) {
			q.sync()
			n += q.show(p[n:])
		}
		p = p[n:]
	}
}

// show gives the screen the next bytes, few enough to look soon whether plain text begins again.
func (q *quick) show(p []byte) int {
	n := min(len(p), 4<<10)
	q.screen.Write(p[:n])
	return n
}

// ready reports whether plain text that comes now may be left out. Outside of margins something stays.
func (q *quick) ready() bool {
	upwards, _ := q.screen.Mode(true, 45) // a backspace at the begin of a line goes to the line before
	q.state = plainText
	return q.screen.Scrolls() && !upwards && q.screen.Ground()
}

func (q *quick) keep(p []byte) {
	for len(p) > 0 {
		n := min(len(p), tailMax)
		q.tail = append(q.tail, p[:n]...)
		p = p[n:]
		if len(q.tail) >= 2*tailMax && !q.shorten() {
			q.sync() // too few lines: the screen reads the whole
		}
	}
}

// shorten leaves out all but the last lines, and reports whether there are as many.
func (q *quick) shorten() bool {
	rows, _ := q.screen.Size()
	at, ok := lastLines(q.tail, q.above+2*rows+1)
	if ok {
		q.tail = q.tail[:copy(q.tail, q.tail[at:])]
		q.cut = true
	}
	return ok
}

// lastLines returns where the last n lines of b begin, behind a carriage return and a newline.
func lastLines(b []byte, n int) (at int, ok bool) {
	at = len(b)
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(b[:at], '\n')
		if i < 0 {
			return 0, false
		}
		at = i
	}
	for at > 0 {
		if i := bytes.LastIndexByte(b[:at], '\n'); i < 0 {
			return 0, false
		} else if i > 0 && b[i-1] == '\r' {
			return i + 1, true
		} else {
			at = i
		}
	}
	return 0, false
}

// sync has the screen show everything.
func (q *quick) sync() {
	if len(q.tail) == 0 {
		return
	}
	q.shorten()
	if q.cut {
		q.screen.Write([]byte("\r"))
	}
	q.screen.Write(q.tail)
	q.tail, q.cut = q.tail[:0], false
}

// A plainState is where in a character or a sequence plain text was cut.
type plainState uint8

const (
	plainText   plainState = iota
	plainEscape            // behind ESC
	plainCSI               // within ESC [, digits so far
	plainFirst             // behind 0xc2, which may begin a control character
	plainOne               // one byte of a character is to come
	plainTwo
	plainThree
)

// plain returns how many bytes of p, which follow those before, are UTF-8, CR, LF, TAB, BEL, BS and SGR. The begin of a sequence is
// plain until its kind is known: the screen is given the bytes in their order all the same.
func (s *plainState) plain(p []byte) int {
	for i := 0; i < len(p); i++ {
		c := p[i]
		if *s == plainText && c >= 0x20 && c < 0x7f {
			continue
		}
		next, ok := s.after(c)
		if !ok {
			return i
		}
		*s = next
	}
	return len(p)
}

// after returns the state behind c, and whether that is plain still.
func (s plainState) after(c byte) (plainState, bool) {
	switch s {
	case plainText:
		return plainBegin(c)
	case plainEscape:
		return plainCSI, c == '['
	case plainCSI:
		if c == 'm' {
			return plainText, true
		}
		return plainCSI, c >= '0' && c <= ';'
	case plainFirst:
		return plainText, c >= 0xa0 && c < 0xc0
	case plainOne:
		return plainText, c >= 0x80 && c < 0xc0
	}
	return s - 1, c >= 0x80 && c < 0xc0
}

func plainBegin(c byte) (plainState, bool) {
	switch {
	case c == '\n', c == '\r', c == '\t', c == '\a', c == '\b':
		return plainText, true
	case c == 0x1b:
		return plainEscape, true
	case c == 0xc2:
		return plainFirst, true
	case c > 0xc2 && c < 0xe0:
		return plainOne, true
	case c >= 0xe0 && c < 0xf0:
		return plainTwo, true
	case c >= 0xf0 && c < 0xf5:
		return plainThree, true
	}
	return plainText, false
}
