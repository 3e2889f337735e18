package tape

import (
	"fmt"
	"strings"
)

// A scanner reads the JSON of one line. The first failure sticks: the scanner then stands at the end of its input, where
// every further read fails at once and every loop ends, so that only the one who began has to look at err.
type scanner struct {
	b     []byte
	i     int  // the next byte
	first bool // nothing stands yet in the object or list that was begun last
	depth int
	err   error

	// arena holds the decoded strings of the line, so that they cost one allocation together.
	arena strings.Builder
	// plain is where strings with escapes are decoded.
	plain []byte
}

// maxDepth bounds the nesting of objects and lists.
const maxDepth = 10000

func (s *scanner) reset(b []byte) {
	plain := s.plain
	if cap(plain) > keepBuffer {
		plain = nil
	}
	*s = scanner{b: b, plain: plain}
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("at byte %d: %s", s.i+1, fmt.Sprintf(format, args...))
	}
	s.i = len(s.b)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// begin steps into the object or list that comes next.
func (s *scanner) begin(open byte) {
	if s.peek() != open {
		s.fail("want %q", open)
		return
	}
	s.i++
	s.first = true
}

// more reports whether another member of the object or list comes next, and steps out of it where none does.
func (s *scanner) more(end byte) bool {
	c, first := s.peek(), s.first
	s.first = false
	switch {
	case c == end:
		s.i++
		return false
	case first:
		return s.err == nil && s.i < len(s.b) || s.end()
	case c == ',':
		s.i++
		return true
	}
	return s.end()
}

// end fails where the input ends or goes on with the wrong byte. It returns false.
func (s *scanner) end() bool {
	s.fail("object or list does not go on")
	return false
}

// key reads the key of a member and the colon behind it.
func (s *scanner) key() []byte {
	key := s.rawText()
	if s.peek() != ':' {
		s.fail("want ':'")
		return nil
	}
	s.i++
	s.peek()
	return key
}

// keyIs steps over the key called name where it comes next, without white space.
func (s *scanner) keyIs(name string) bool {
	at := s.i
	if !s.first {
		if at >= len(s.b) || s.b[at] != ',' {
			return false
		}
		at++
	}
	end := at + len(name) + 2
	if end >= len(s.b) || s.b[at] != '"' || s.b[end-1] != '"' || s.b[end] != ':' || string(s.b[at+1:end-1]) != name {
		return false
	}
	s.i = end + 1
	s.first = false
	return true
}

// null steps over a null, where one comes next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") }

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		s.fail("not a JSON value")
		return false
	}
	s.i += len(word)
	return true
}
