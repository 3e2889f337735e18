package tape

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// integer reads a number that fits into a T.
func integer[T int | int64 | uint64](s *scanner) T {
	negative := s.peek() == '-'
	if negative {
		s.i++
	}
	from := s.i
	var n uint64
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		digit := uint64(s.b[s.i] - '0')
		if n > (1<<64-1-digit)/10 {
			s.fail("number is out of range")
			return 0
		}
		n = n*10 + digit
		s.i++
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 || s.fraction() {
		s.fail("want an integer")
		return 0
	}
	v := T(n)
	if negative {
		v = -v
	}
	if negative != (v < 0) && n != 0 || (v < 0) != negative && n != 0 || !negative && uint64(v) != n || negative && uint64(-v) != n {
		s.fail("number is out of range")
		return 0
	}
	return v
}

// fraction reports whether the number that was read goes on.
func (s *scanner) fraction() bool {
	if s.i >= len(s.b) {
		return false
	}
	c := s.b[s.i]
	return c == '.' || c == 'e' || c == 'E'
}

// text reads a string. It shares memory with the other strings of its line.
func (s *scanner) text() string {
	plain, ok := s.plainText()
	if !ok {
		return s.escapedText()
	}
	if common := intern(plain); common != "" || len(plain) == 0 {
		return common
	}
	at := s.grow()
	s.arena.Write(plain)
	return s.arena.String()[at:]
}

// rawText reads a string as bytes that stand in the input, or are fresh where it has escapes.
func (s *scanner) rawText() []byte {
	plain, ok := s.plainText()
	if !ok {
		return []byte(s.escapedText())
	}
	return plain
}

// plainText reads a string that has no escapes. Where it has some it returns false and stands before the string.
func (s *scanner) plainText() ([]byte, bool) {
	if s.peek() != '"' {
		s.fail("want a string")
		return nil, true
	}
	from := s.i + 1
	end := from + plainLen(s.b[from:])
	if end < len(s.b) && s.b[end] == '"' {
		s.i = end + 1
		return s.b[from:end], true
	}
	return nil, false
}

// grow makes room in the arena for all strings that may still come and returns where the next one begins.
func (s *scanner) grow() int {
	if s.arena.Cap() == 0 {
		s.arena.Grow(len(s.b) - s.i + 64)
	}
	return s.arena.Len()
}

// escapedText reads a string that has escapes.
func (s *scanner) escapedText() string {
	at := s.grow()
	s.i++
	for s.i < len(s.b) {
		n := plainLen(s.b[s.i:])
		s.arena.Write(s.b[s.i : s.i+n])
		s.i += n
		if s.i == len(s.b) {
			break
		}
		switch s.b[s.i] {
		case '"':
			s.i++
			return s.arena.String()[at:]
		case '\\':
			s.escape()
		default:
			s.fail("control character in a string")
		}
	}
	s.fail("string does not end")
	return ""
}

// unescaped maps the letter of a short escape to its byte.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads an escape into the arena.
func (s *scanner) escape() {
	if s.i+1 >= len(s.b) {
		s.fail("string does not end")
		return
	}
	letter := s.b[s.i+1]
	if c := unescaped[letter]; c != 0 {
		s.arena.WriteByte(c)
		s.i += 2
		return
	}
	r, ok := hexRune(s.b[s.i:])
	if !ok {
		s.fail("bad escape")
		return
	}
	s.i += 6
	if utf16.IsSurrogate(r) {
		low, _ := hexRune(s.b[s.i:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			s.i += 6
		}
	}
	s.arena.WriteRune(r)
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

// intern returns a string that is already in memory, or "".
func intern(b []byte) string {
	switch string(b) {
	case "record":
		return "record"
	case "user_script":
		return "user_script"
	case "runtime_finalize":
		return "runtime_finalize"
	case "wall":
		return "wall"
	case "monotonic":
		return "monotonic"
	}
	return ""
}

// skip steps over any value.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '"':
		s.skipText()
	case c == '{' || c == '[':
		s.skipNested(c)
	case c == '-' || '0' <= c && c <= '9':
		s.skipNumber()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.fail("not a JSON value")
	}
}

func (s *scanner) skipNested(open byte) {
	if s.depth++; s.depth > maxDepth {
		s.fail("nested more than %d deep", maxDepth)
		return
	}
	for s.begin(open); s.more(open + 2); { // '{' and '}', '[' and ']' are two apart
		if open == '{' {
			s.skipText()
			if s.peek() != ':' {
				s.fail("want ':'")
				return
			}
			s.i++
		}
		s.skip()
	}
	s.depth--
}

func (s *scanner) skipText() {
	if s.peek() != '"' {
		s.fail("want a string")
		return
	}
	s.i++
	for s.i < len(s.b) {
		s.i += plainLen(s.b[s.i:])
		switch {
		case s.i == len(s.b):
		case s.b[s.i] == '"':
			s.i++
			return
		case s.b[s.i] == '\\':
			s.skipEscape()
		default:
			s.fail("control character in a string")
		}
	}
	s.fail("string does not end")
}

func (s *scanner) skipEscape() {
	if s.i+1 < len(s.b) && unescaped[s.b[s.i+1]] != 0 {
		s.i += 2
		return
	}
	if _, ok := hexRune(s.b[s.i:]); !ok {
		s.fail("bad escape")
		return
	}
	s.i += 6
}

func (s *scanner) skipNumber() {
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else {
		s.digits()
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		s.digits()
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		s.digits()
	}
}

// digits steps over at least one digit.
func (s *scanner) digits() {
	from := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	if s.i == from {
		s.fail("want a digit")
	}
}

var errUTF8 = errors.New("not UTF-8")

// validJSON says what keeps b from being one JSON value in UTF-8.
func validJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errUTF8
	}
	s := scanner{b: b}
	s.skip()
	if s.peek(); s.err == nil && s.i < len(b) {
		s.fail("something stands behind the value")
	}
	return s.err
}

// appendOneLine appends valid JSON, without the line ends that may stand between its tokens. (Within strings there are
// none.)
func appendOneLine(dst []byte, v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 {
		return append(dst, v...)
	}
	for _, c := range v {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}
