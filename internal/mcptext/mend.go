package mcptext

import (
	"strings"
	"unicode/utf8"
)

// mend makes the start of a JSON value a whole one: what is open is closed, and a key or word that was cut is left out. Bytes
// that are a whole value, or no JSON, come back with nothing but that changed.
func mend(b []byte) []byte {
	m := mender{b: b}
	m.walk()
	if m.whole {
		return b
	}
	out := append([]byte(nil), b[:m.safe]...)
	if m.quoted {
		out = append(out, '"')
	}
	for i := m.depth - 1; i >= 0; i-- {
		out = append(out, m.open[i])
	}
	return out
}

// maxOpen bounds how deep a cut value is mended.
const maxOpen = 200

// A mender finds the last place in a cut value up to which it can be closed.
type mender struct {
	b      []byte
	open   []byte // what closes the objects and lists that are open
	safe   int    // up to here b can be closed
	depth  int    // how many were open there
	quoted bool   // and that a string was
	whole  bool   // the value ended
	key    bool   // the next string is the key of a member
}

func (m *mender) walk() {
	for i := 0; i < len(m.b) && len(m.open) < maxOpen; {
		switch c := m.b[i]; c {
		case '{', '[':
			m.open = append(m.open, c+2) // the closing one stands two behind it, of both
			i, m.key = i+1, c == '{'
			m.mark(i)
		case '}', ']':
			if len(m.open) == 0 {
				return
			}
			m.open = m.open[:len(m.open)-1]
			i++
			m.value(i)
		case '"':
			end, closed := textEnd(m.b, i)
			switch {
			case closed && m.key:
			case closed:
				m.value(end)
			case !m.key:
				m.mark(end)
				m.quoted = true
				return
			default:
				return
			}
			i = end
		case ',':
			m.key = len(m.open) > 0 && m.open[len(m.open)-1] == '}'
			i++
		case ':':
			m.key = false
			i++
		case ' ', '\t', '\r', '\n':
			i++
		default:
			for i < len(m.b) && !delimits(m.b[i]) {
				i++
			}
			if i < len(m.b) { // else it may go on
				m.value(i)
			}
		}
	}
}

func (m *mender) mark(at int) { m.safe, m.depth = at, len(m.open) }

func (m *mender) value(end int) {
	m.mark(end)
	m.whole = len(m.open) == 0
}

func delimits(c byte) bool { return strings.IndexByte(",:{}[]\" \t\r\n", c) >= 0 }

// textEnd returns where the string that begins at i ends, behind its quote; of one that was cut, up to where it is sound.
func textEnd(b []byte, i int) (end int, closed bool) {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, true
		case '\\':
			n := 2
			if i+1 < len(b) && b[i+1] == 'u' {
				n = 6
			}
			if i+n > len(b) {
				return i, false
			}
			i += n - 1
		}
	}
	return len(TrimCut(b)), false
}

// TrimCut is b without a character that was cut at its end.
func TrimCut(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}
