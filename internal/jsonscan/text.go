package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a string.
func (s *Scanner) Text() string { return string(s.TextBytes()) }

// TextBytes reads a string as bytes, decoded, that are valid until the next string is read.
func (s *Scanner) TextBytes() []byte {
	if s.Peek() != '"' {
		s.Fail("want a string")
		return nil
	}
	from := s.i + 1
	if len(s.b)-from >= 8 { // most keys and many values are short
		hit := special(binary.LittleEndian.Uint64(s.b[from:]))
		if end := from + bits.TrailingZeros64(hit)/8; hit != 0 && s.b[end] == '"' {
			s.i = end + 1
			return s.b[from:end]
		}
	}
	end := from + plainLen(s.b[from:])
	if end < len(s.b) && s.b[end] == '"' {
		s.i = end + 1
		return s.b[from:end]
	}
	s.i = from
	return s.unescape()
}

// firstRoom is how much room a string with escapes gets at first, in bytes: what a line has left may be far more.
const firstRoom = 4 << 10

// unescape reads a string, behind its first quote, that has escapes. It works as escape does, the other way.
func (s *Scanner) unescape() []byte {
	b, r, w := s.b, s.i, 0
	s.plain = slices.Grow(s.plain[:0], min(len(b)-r, firstRoom)+2*8)
	out := s.plain[:cap(s.plain)]
	why := "string does not end"
scan:
	for r < len(b) {
		if w+2*8 > len(out) { // for eight bytes as they stand and an escape behind them
			out = slices.Grow(out, len(out))
			out = out[:cap(out)]
			s.plain = out
		}
		if r+8 <= len(b) {
			x := load8(b[r:])
			binary.LittleEndian.PutUint64(out[w:], x)
			plain := bits.TrailingZeros64(special(x)) / 8
			r, w = r+plain, w+plain
			if plain == 8 {
				continue
			}
		}
		switch c := b[r]; {
		case c == '"':
			s.i = r + 1
			return out[:w]
		case c == '\\':
			n, m := 2, 1
			if out[w] = short(b[r:]); out[w] == 0 {
				n, m = unescape(out[w:], b[r:])
			}
			if n == 0 {
				why = "bad escape"
				break scan
			}
			r, w = r+n, w+m
		case c < 0x20:
			why = "control character in a string"
			break scan
		default:
			out[w] = c
			r, w = r+1, w+1
		}
	}
	s.i = r
	s.Fail("%s", why)
	return nil
}

// short decodes the short escape at the beginning of src; 0 where there is none.
func short(src []byte) byte {
	if len(src) < 2 {
		return 0
	}
	return unescaped[src[1]]
}

// unescaped maps the letter of a short escape to its byte.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unescape decodes the escape at the beginning of src, or the two of a surrogate pair, to dst. It returns how many bytes
// it read, 0 where there is no escape, and how many it wrote, which are fewer. A surrogate alone is U+FFFD.
func unescape(dst, src []byte) (read, wrote int) {
	if c := short(src); c != 0 {
		dst[0] = c
		return 2, 1
	}
	r, ok := hexRune(src)
	if !ok {
		return 0, 0
	}
	read = 6
	if utf16.IsSurrogate(r) {
		low, _ := hexRune(src[6:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			read = 12
		}
	}
	return read, utf8.EncodeRune(dst, r)
}

// hexRune reads \uXXXX at the beginning of b.
func hexRune(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
