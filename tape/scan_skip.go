package tape

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

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
	var room [utf8.UTFMax]byte
	n, _ := unescape(room[:], s.b[s.i:])
	if n == 0 {
		s.fail("bad escape")
	}
	s.i += n
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
