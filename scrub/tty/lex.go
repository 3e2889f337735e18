package tty

import "encoding/binary"

// A kind says what bytes of the stream are to a terminal.
type kind uint8

const (
	text     kind = iota // of printed characters
	newline              // LF
	carriage             // CR
	tab
	quiet   // of a sequence that prints nothing, moves nothing and remembers no place: SGR, most modes, queries
	moves   // the end of one that may
	payload // of a control string
)

// state of a lexer.
type state uint8

const (
	ground    state = iota
	afterC2         // the first byte of what may be a control of C1 in UTF-8
	escaped         // ESC came
	escapedBy       // ESC and intermediate bytes
	inCSI
	inDCS // before its data
	inString
	stringC2 // afterC2 in a control string
)

// A lexer tells the kinds of bytes as vt.Lexer would, at the speed of a plain log. It knows as much of a terminal as is needed to
// tell text from what is none, and what may move or erase from what may not; a sequence that it does not know moves.
type lexer struct {
	state  state
	osc    bool // the control string is an OSC
	inter  byte // the last intermediate byte, or the private marker
	final  byte // of the last CSI
	n      int
	params [maxParams]byte
}

// maxParams is how many bytes of parameters are kept; a longer sequence may be anything.
const maxParams = 48

// next returns the kind of the first n bytes of p, which is not empty.
func (x *lexer) next(p []byte) (k kind, n int) {
	c := p[0]
	switch x.state {
	case ground:
		if n = plainRun(p); n > 0 {
			return text, n
		}
		return x.control(c), 1
	case afterC2:
		x.state = ground
		if c < 0x80 || c >= 0xa0 {
			return x.next(p)
		}
		return x.escape(c - 0x40), 1
	case escaped, escapedBy:
		return x.escape(c), 1
	case inCSI:
		for n < len(p) && isParam(p[n]) {
			n++
		}
		x.n += copy(x.params[x.n:], p[:n])
		if n == len(p) {
			return quiet, n
		}
		return x.csi(p[n]), n + 1
	case inDCS:
		return x.dcs(c), 1
	}
	return x.string(p)
}

// plainRun returns how many bytes of p begin no control: not of C0, DEL, nor the first byte of C1 in UTF-8.
func plainRun(p []byte) (n int) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(p)-n >= 8 {
		v := binary.LittleEndian.Uint64(p[n:])
		del, c2 := v^(0x7f*ones), v^(0xc2*ones)
		if ((v-0x20*ones)&^v|(del-ones)&^del|(c2-ones)&^c2)&highs != 0 {
			break
		}
		n += 8
	}
	for n < len(p) && p[n] >= 0x20 && p[n] != 0x7f && p[n] != 0xc2 {
		n++
	}
	return n
}

// hasBorder reports whether p may have a border: what is no ASCII, or '|'.
func hasBorder[T string | []byte](p T) bool {
	const ones, highs, bars = 0x0101010101010101, 0x8080808080808080, 0x7c7c7c7c7c7c7c7c
	i := 0
	for ; i+8 <= len(p); i += 8 {
		v := uint64(p[i]) | uint64(p[i+1])<<8 | uint64(p[i+2])<<16 | uint64(p[i+3])<<24 |
			uint64(p[i+4])<<32 | uint64(p[i+5])<<40 | uint64(p[i+6])<<48 | uint64(p[i+7])<<56
		if bar := v ^ bars; (v|(bar-ones)&^bar)&highs != 0 {
			return true
		}
	}
	for ; i < len(p); i++ {
		if p[i] >= 0x80 || p[i] == '|' {
			return true
		}
	}
	return false
}

// control takes a byte of C0, DEL or 0xC2 outside of a sequence.
func (x *lexer) control(c byte) kind {
	switch c {
	case '\n':
		return newline
	case '\r':
		return carriage
	case '\t':
		return tab
	case 0x1b:
		x.begin(escaped)
	case 0xc2:
		x.state = afterC2
		return text
	case '\b', '\v', '\f':
		return moves
	}
	return quiet
}

func (x *lexer) begin(s state) { x.state, x.n, x.inter = s, 0, 0 }

// escape takes a byte after ESC.
func (x *lexer) escape(c byte) kind {
	switch {
	case c < 0x20 || c >= 0x7f:
		return x.within(c)
	case c < 0x30:
		x.state, x.inter = escapedBy, c
		return quiet
	case x.state == escapedBy:
		x.state = ground
		if x.inter == '#' { // DECALN fills the screen
			return moves
		}
		return quiet
	}
	x.begin(ground)
	switch c {
	case '[':
		x.state, x.final = inCSI, 0
	case ']':
		x.state, x.osc = inString, true
	case 'X', '^', '_':
		x.state, x.osc = inString, false
	case 'P':
		x.state, x.osc = inDCS, false
	case '=', '>', '\\', 'n', 'o', '|', '}', '~':
	default: // cursor, scrolling, reset, and what is not known
		return moves
	}
	return quiet
}

// within takes a control in the middle of a sequence, or what no sequence has.
func (x *lexer) within(c byte) kind {
	switch c {
	case 0x1b:
		x.begin(escaped)
	case 0x18, 0x1a:
		x.state = ground
	case '\n', '\r', '\t', '\b', '\v', '\f':
		return moves
	case 0xc2:
		x.state = afterC2
	default:
		if c >= 0x80 {
			x.state = ground
		}
	}
	return quiet
}

func isParam(c byte) bool { return c >= 0x30 && c < 0x3c }

// csi takes a byte of a control sequence that is no parameter.
func (x *lexer) csi(c byte) kind {
	switch {
	case c < 0x20 || c >= 0x7f:
		return x.within(c)
	case c < 0x30 || c >= 0x3c && c < 0x40:
		x.inter = c
		return quiet
	}
	x.state, x.final = ground, c
	if x.harmless(c) {
		return quiet
	}
	return moves
}

// dcs takes a byte before the data of a DCS.
func (x *lexer) dcs(c byte) kind {
	switch {
	case c < 0x20 || c >= 0x7f:
		if k := x.within(c); x.state != inDCS {
			return k
		}
	case c >= 0x40:
		x.state = inString
	}
	return quiet
}

// harmless reports whether a control sequence with a final byte changes nothing on the screen, nor where the cursor is.
func (x *lexer) harmless(final byte) bool {
	switch final {
	case 'm', 'n', 'c':
		return x.inter != '$' && x.inter != '#'
	case 't', 'q':
		return x.inter != '$'
	case 'h', 'l':
		return x.inter == 0 || x.inter == '?' && !x.switchesScreen()
	case 'p':
		return x.inter != '!'
	case 'u':
		return x.inter != 0 // of the keyboard; without it restores the cursor
	}
	return false
}

// jumps reports whether what follows a sequence, or a control, that moves with a last byte stands elsewhere: it does not erase alone.
func (x *lexer) jumps(last byte) bool {
	return last != x.final || x.inter != 0 && x.inter != '?' || last != 'J' && last != 'K' && last != 'X'
}

// isReset reports whether an SGR turns everything off.
func (x *lexer) isReset() bool { return x.n == 0 || x.n == 1 && x.params[0] == '0' }

// setsBackground reports whether a sequence that ended may be an SGR that sets a background, or turns it round.
func (x *lexer) setsBackground() bool {
	if x.final != 'm' || x.inter != 0 {
		return false
	}
	for i, c := range x.params[:x.n] {
		if i > 0 && x.params[i-1] != ';' {
			continue
		}
		digits := 1
		for i+digits < x.n && x.params[i+digits] >= '0' && x.params[i+digits] <= '9' {
			digits++
		}
		if c == '7' && digits == 1 || c == '4' && digits == 2 || c == '1' && digits == 3 {
			return true
		}
	}
	return false
}

// switchesScreen reports whether the modes of a DECSET change what is on the screen, or where the cursor is.
func (x *lexer) switchesScreen() bool {
	n := 0
	for i := range x.n + 1 {
		if i < x.n && x.params[i] >= '0' && x.params[i] <= '9' {
			n = min(n*10+int(x.params[i]-'0'), 1<<20)
			continue
		}
		switch n {
		case 3, 5, 6, 40, 45, 47, 69, 1046, 1047, 1048, 1049:
			return true
		}
		n = 0
	}
	return x.n == maxParams
}

// string takes bytes of a control string.
func (x *lexer) string(p []byte) (k kind, n int) {
	c := p[0]
	if x.state == stringC2 {
		x.state = inString
		if c >= 0x80 && c < 0xa0 {
			x.begin(ground)
			return x.escape(c - 0x40), 1
		}
	}
	for n < len(p) && p[n] != 0x1b && p[n] != 0x18 && p[n] != 0x1a && p[n] != 0xc2 && (p[n] != 0x07 || !x.osc) {
		n++
	}
	if n > 0 {
		return payload, n
	}
	switch c {
	case 0xc2:
		x.state = stringC2
		return payload, 1
	case 0x1b:
		x.begin(escaped)
	default:
		x.begin(ground)
	}
	return quiet, 1
}
