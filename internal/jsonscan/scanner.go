package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
)

// MaxDepth bounds the nesting of objects and lists.
const MaxDepth = 10000

// keepBuffer is the largest buffer, in bytes, that is kept for the next value: one huge value must not stay.
const keepBuffer = 1 << 20

var errMark = errors.New("it begins with a byte order mark, which JSON has not: save it without")

// A Scanner reads one JSON value from memory. The first failure sticks: the scanner then stands at the end of its input,
// where every further read fails at once and every loop ends, so that only the one who began has to look at Err. The zero
// Scanner stands before nothing.
type Scanner struct {
	b     []byte
	i     int  // the next byte
	first bool // nothing stands yet in the object or list that was begun last
	err   error
	plain []byte // where strings with escapes are decoded
}

// Reset makes s stand before the value in b, which it does not change and which must not change while s reads.
func (s *Scanner) Reset(b []byte) {
	s.b, s.i, s.first, s.err = b, 0, false, nil
	if cap(s.plain) > keepBuffer {
		s.plain = nil
	}
}

// Err returns the first failure, a *SyntaxError.
func (s *Scanner) Err() error { return s.err }

// End returns the first failure; that something other than white space follows is one.
func (s *Scanner) End() error {
	if s.Peek(); s.err == nil && s.i < len(s.b) {
		s.Fail("something stands behind the value")
	}
	return s.err
}

// Offset returns how many bytes were read.
func (s *Scanner) Offset() int { return s.i }

// Since returns the bytes from an earlier Offset on, as they stand in the input.
func (s *Scanner) Since(offset int) []byte { return s.b[offset:s.i] }

// Rest returns the bytes that were not read yet.
func (s *Scanner) Rest() []byte { return s.b[s.i:] }

// A Mark is a place in the input.
type Mark struct {
	at    int
	first bool
}

// Mark returns the place where s stands.
func (s *Scanner) Mark() Mark { return Mark{s.i, s.first} }

// Back returns to a place, unless something failed.
func (s *Scanner) Back(m Mark) {
	if s.err == nil {
		s.i, s.first = m.at, m.first
	}
}

// A SyntaxError says what is wrong with what stands at a place.
type SyntaxError struct {
	Offset int64 // in bytes, from 0
	Err    error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset+1, e.Err) }

// Unwrap returns Err.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Fail is for what a reader finds wrong with what stands there. The first failure counts.
func (s *Scanner) Fail(format string, args ...any) { s.Wrap(fmt.Errorf(format, args...)) }

// Wrap is Fail for an error whose identity matters. At a byte order mark, where no JSON begins, it is that which is told.
func (s *Scanner) Wrap(err error) {
	if s.i == 0 && bytes.HasPrefix(s.b, []byte(byteOrderMark)) {
		err = errMark
	}
	if s.err == nil {
		s.err = &SyntaxError{int64(s.i), err}
	}
	s.i = len(s.b)
}

// Peek steps over white space and returns the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
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

// Begin steps into the object '{' or list '[' that comes next.
func (s *Scanner) Begin(open byte) {
	if s.Peek() != open {
		s.Fail("want %q", open)
		return
	}
	s.i++
	s.first = true
}

// More reports whether another member of the object '}' or list ']' comes next, and steps out of it where none does.
func (s *Scanner) More(end byte) bool {
	c, first := s.Peek(), s.first
	s.first = false
	switch {
	case c == end:
		s.i++
		return false
	case first:
		return s.err == nil && s.i < len(s.b) || s.stops()
	case c == ',':
		s.i++
		return true
	}
	return s.stops()
}

// stops fails where the input ends or goes on with the wrong byte. It returns false.
func (s *Scanner) stops() bool {
	s.Fail("object or list does not go on")
	return false
}

// Key reads the key of a member, decoded, and the colon behind it. It is valid until the next string is read.
func (s *Scanner) Key() []byte {
	key := s.TextBytes()
	if !s.Colon() {
		return nil
	}
	return key
}

// Colon reads the colon behind a key that was read as a string.
func (s *Scanner) Colon() bool {
	if s.Peek() != ':' {
		s.Fail("want ':'")
		return false
	}
	s.i++
	s.Peek()
	return true
}

// KeyIs steps over the comma and the key called name, where they come next without white space and without an escape. It
// stands in the place of More and Key for a form that is nearly always written in one order.
func (s *Scanner) KeyIs(name string) bool {
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

// Null steps over a null, and reports true, where one comes next.
func (s *Scanner) Null() bool { return s.Peek() == 'n' && s.literal("null") }

// Bool reads true or false.
func (s *Scanner) Bool() bool {
	if s.Peek() == 't' {
		return s.literal("true")
	}
	if s.Peek() != 'f' {
		s.Fail("want true or false")
		return false
	}
	s.literal("false")
	return false
}

func (s *Scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		s.Fail("not a JSON value")
		return false
	}
	s.i += len(word)
	return true
}

// Raw reads any value and returns it as it stands in the input, whose memory it shares.
func (s *Scanner) Raw() []byte {
	s.Peek()
	from := s.i
	s.Skip()
	if s.err != nil {
		return nil
	}
	return s.b[from:s.i]
}

// Skip steps over any value, which it validates but for its UTF-8.
func (s *Scanner) Skip() {
	var why string
	switch c := s.Peek(); c {
	case '"':
		s.i, why = skipText(s.b, s.i)
	case '{', '[', 0:
		s.i, why = skip(s.b, s.i)
	default:
		s.i, why = skipPlain(s.b, s.i)
	}
	if why != "" {
		s.Fail("%s", why)
	}
}
