package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
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
	half  bool   // the last such string has half of a surrogate pair
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
		s.i, why = skip(s.b, s.i, 0)
	default:
		s.i, why = skipPlain(s.b, s.i)
	}
	if why != "" {
		s.Fail("%s", why)
	}
}

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

// Half reports whether the last string that was read with an escape in it had half of a surrogate pair, which is U+FFFD now.
func (s *Scanner) Half() bool { return s.half }

// firstRoom is how much room a string with escapes gets at first, in bytes: what a line has left may be far more.
const firstRoom = 4 << 10

// unescape reads a string, behind its first quote, that has escapes. It works as escape does, the other way.
func (s *Scanner) unescape() []byte {
	b, r, w := s.b, s.i, 0
	s.half = false
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
				unit, _ := hexRune(b[r:])
				s.half = s.half || n == 6 && utf16.IsSurrogate(unit)
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

// Int reads an integer. One that does not fit fails; no number is ever rounded.
func (s *Scanner) Int() int64 { return Integer[int64](s) }

// Uint reads an integer that is not negative. One that does not fit fails; no number is ever rounded.
func (s *Scanner) Uint() uint64 { return Integer[uint64](s) }

// Integer reads a number that fits into a T. One that does not fit, or has a fraction or an exponent, fails.
func Integer[T int | int64 | uint64](s *Scanner) T {
	negative := s.Peek() == '-'
	if negative {
		s.i++
	}
	from := s.i
	var n uint64
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		digit := uint64(s.b[s.i] - '0')
		if n > (1<<64-1-digit)/10 {
			s.Fail("number is out of range")
			return 0
		}
		n = n*10 + digit
		s.i++
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 || s.fraction() {
		s.Fail("want an integer")
		return 0
	}
	v := T(n)
	fits := v >= 0 && uint64(v) == n
	if negative {
		v = -v
		fits = v <= 0 && uint64(-v) == n
	}
	if !fits {
		s.Fail("number is out of range")
		return 0
	}
	return v
}

// fraction reports whether the number that was read goes on.
func (s *Scanner) fraction() bool {
	if s.i >= len(s.b) {
		return false
	}
	c := s.b[s.i]
	return c == '.' || c == 'e' || c == 'E'
}

// Number reads any number and returns it as it stands in the input, whose memory it shares.
func (s *Scanner) Number() []byte {
	if c := s.Peek(); c != '-' && c-'0' > 9 {
		s.Fail("want a number")
		return nil
	}
	return s.Raw()
}
