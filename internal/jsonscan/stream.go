package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// A Stream reads one JSON value of any length from a reader, with the calls of a Scanner: Begin, More and Key step through
// what is too long for memory, Raw gives the next value whole, to be read by a Scanner, and Skip steps over one of any
// length. No more than the limit is held in memory. Raw and Skip find the end of a value by its brackets and quotes: what
// stands between them is for the Scanner that reads it.
//
// The first failure sticks, as a Scanner's does; input that ends too early wraps io.ErrUnexpectedEOF. It is for one goroutine.
type Stream struct {
	window
	hold int // of buf, the first byte that is still needed; -1 for none before i

	lines   int // newlines before counted
	counted int // of buf

	first bool
	err   error
	text  Scanner
}

// NewStream returns a Stream that holds values of at most limit bytes.
func NewStream(r io.Reader, limit int) *Stream {
	return &Stream{window: window{r: r, limit: limit, buf: make([]byte, min(linesBuffer, limit+1))}, hold: -1}
}

// byteOrderMark is U+FEFF, with which some programs of Windows begin a file.
const byteOrderMark = "\uFEFF"

// SkipMark steps over a byte order mark. It is for who has read nothing yet.
func (s *Stream) SkipMark() {
	for s.n < len(byteOrderMark) && s.fill() {
		continue
	}
	if bytes.HasPrefix(s.buf[:s.n], []byte(byteOrderMark)) {
		s.i = len(byteOrderMark)
	}
}

// Err returns the first failure: of the input, a *SyntaxError, of the reader, or a *LongLineError.
func (s *Stream) Err() error { return s.err }

// End returns the first failure; that something other than white space follows is one.
func (s *Stream) End() error {
	if s.Peek(); s.err == nil && s.i < s.n {
		s.Fail("something stands behind the value")
	}
	return s.err
}

// Offset returns how many bytes were read.
func (s *Stream) Offset() int64 { return s.base + int64(s.i) }

// Line returns the number of the line that s stands in, from 1.
func (s *Stream) Line() int {
	s.count(s.i)
	return s.lines + 1
}

func (s *Stream) count(end int) {
	if end > s.counted {
		s.lines += bytes.Count(s.buf[s.counted:end], []byte{'\n'})
		s.counted = end
	}
}

// Hold keeps what is read from here on, until Held, which may be no more than the limit.
func (s *Stream) Hold() { s.hold = s.i }

// Held returns what was read since Hold, valid until the next call, and ends that.
func (s *Stream) Held() []byte {
	from := s.hold
	s.hold = -1
	if s.err != nil || from < 0 {
		return nil
	}
	return s.buf[from:s.i]
}

// Fail is for what a reader finds wrong with what stands there. The first failure counts.
func (s *Stream) Fail(format string, args ...any) {
	s.stop(&SyntaxError{s.Offset(), fmt.Errorf(format, args...)})
}

func (s *Stream) stop(err error) {
	if s.err == nil {
		s.err = err
	}
	s.base += int64(s.i)
	s.count(s.i)
	s.i, s.n, s.hold, s.counted = 0, 0, -1, 0
	s.end = s.err
}

// early stops a value that does not end.
func (s *Stream) early() {
	if s.end != nil && !errors.Is(s.end, io.EOF) {
		s.stop(s.end)
		return
	}
	s.stop(&SyntaxError{s.base + int64(s.n), io.ErrUnexpectedEOF})
}

// Peek steps over white space and returns the next byte, 0 at the end.
func (s *Stream) Peek() byte {
	for s.err == nil {
		s.i = skipSpace(s.buf[:s.n], s.i)
		if s.i < s.n {
			return s.buf[s.i]
		}
		if !s.fill() {
			break
		}
	}
	return 0
}

// Begin steps into the object '{' or list '[' that comes next.
func (s *Stream) Begin(open byte) {
	if s.want(open) {
		s.i++
		s.first = true
	}
}

// want reports whether c comes next, and fails where it does not.
func (s *Stream) want(c byte) bool {
	switch next := s.Peek(); {
	case next == c && s.err == nil:
		return true
	case s.i == s.n:
		s.early()
	default:
		s.Fail("want %q", c)
	}
	return false
}

// More reports whether another member of the object '}' or list ']' comes next, and steps out of it where none does.
func (s *Stream) More(end byte) bool {
	c, first := s.Peek(), s.first
	s.first = false
	switch {
	case c == end && s.err == nil:
		s.i++
		return false
	case s.i == s.n:
		s.early()
	case first:
		return true
	case c == ',':
		s.i++
		return true
	default:
		s.Fail("want ',' or %q", end)
	}
	return false
}

// Key reads the key of a member, decoded, and the colon behind it. It is valid until the next call.
func (s *Stream) Key() []byte {
	if !s.want('"') {
		return nil
	}
	s.text.Reset(bytes.Clone(s.Raw()))
	key := s.text.TextBytes()
	if err := s.text.Err(); err != nil && s.err == nil {
		s.stop(fmt.Errorf("key before byte %d: %w", s.Offset()+1, err))
	}
	if !s.want(':') {
		return nil
	}
	s.i++
	s.Peek()
	return key
}

// Raw reads any value and returns it as it stands, valid until the next call.
func (s *Stream) Raw() []byte {
	s.Peek()
	own := s.hold < 0
	if own {
		s.hold = s.i
	}
	at := s.i - s.hold
	s.value()
	from := s.hold + at
	if own {
		s.hold = -1
	}
	if s.err != nil {
		return nil
	}
	return s.buf[from:s.i]
}

// Skip steps over any value.
func (s *Stream) Skip() {
	s.Peek()
	s.value()
}

// value steps over the value that s stands before.
func (s *Stream) value() {
	if s.i == s.n && !s.fill() {
		s.early()
		return
	}
	switch c := s.buf[s.i]; c {
	case '"':
		s.i++
		s.string()
	case '{', '[':
		s.nested()
	case ',', ':', ']', '}':
		s.Fail("not a JSON value")
	default:
		s.plain()
	}
}

// nested steps over an object or a list.
func (s *Stream) nested() {
	depth := 0
	for {
		for s.i < s.n && !bracket[s.buf[s.i]] {
			s.i++
		}
		if s.i == s.n {
			if !s.fill() {
				s.early()
				return
			}
			continue
		}
		c := s.buf[s.i]
		s.i++
		switch c {
		case '"':
			s.string()
		case '{', '[':
			depth++
		default:
			depth--
		}
		if depth == 0 || s.err != nil {
			return
		}
		if depth > MaxDepth {
			s.Fail("%s", tooDeep)
			return
		}
	}
}

var bracket = [256]bool{'{': true, '}': true, '[': true, ']': true, '"': true}

// string steps over a string, behind its first quote.
func (s *Stream) string() {
	for {
		for s.i+8 <= s.n {
			if hit := special(load8(s.buf[s.i:])); hit != 0 {
				s.i += bits.TrailingZeros64(hit) / 8
				break
			}
			s.i += 8
		}
		switch {
		case s.i < s.n && s.buf[s.i] == '"':
			s.i++
			return
		case s.i+2 <= s.n && s.buf[s.i] == '\\':
			s.i += 2
		case s.i < s.n && s.buf[s.i] != '\\':
			s.i++
		case !s.fill():
			s.early()
			return
		}
	}
}

// plain steps over a number or a word.
func (s *Stream) plain() {
	for {
		for s.i < s.n {
			switch s.buf[s.i] {
			case ',', ':', ']', '}', '{', '[', '"', ' ', '\t', '\r', '\n':
				return
			}
			s.i++
		}
		if !s.fill() {
			return
		}
	}
}

// fill reads on, behind what is held, and reports whether something came.
func (s *Stream) fill() bool {
	if s.end != nil || s.err != nil {
		if s.err == nil && !errors.Is(s.end, io.EOF) {
			s.stop(s.end)
		}
		return false
	}
	from := s.i
	if s.hold >= 0 {
		from = s.hold
	}
	if s.n-from > s.limit {
		s.stop(&LongLineError{Offset: s.base + int64(from), Limit: s.limit})
		return false
	}
	s.count(from)
	came := s.more(from)
	s.counted = max(s.counted-from, 0)
	if s.hold >= 0 {
		s.hold = 0
	}
	if !came && !errors.Is(s.end, io.EOF) {
		s.stop(s.end)
	}
	return came
}

// linesBuffer is the size of the buffer that lines are cut in, in bytes. It begins with firstBuffer, for who reads a line alone,
// and a longer line makes it grow beyond.
const (
	linesBuffer = 256 << 10
	firstBuffer = 16 << 10
)

// A LongLineError says that a line, or an element of a Stream, is longer than its reader takes.
type LongLineError struct {
	Line   int   // from 1; 0 where lines are not counted
	Offset int64 // where it begins, in bytes
	Limit  int   // in bytes
}

func (e *LongLineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("the value at byte %d is longer than the limit of %d bytes", e.Offset+1, e.Limit)
	}
	return fmt.Sprintf("line %d is longer than the limit of %d bytes", e.Line, e.Limit)
}

// A window is the part of an input that is in memory.
type window struct {
	r     io.Reader
	limit int // bytes of a line or a value; the buffer has one more at most
	buf   []byte
	i, n  int   // of buf, where who reads stands, and where what was read ends
	base  int64 // the offset of buf[0]
	full  bool  // the last read filled the buffer
	end   error // of the reader
}

const maxEmptyReads = 100

// more reads on. What stands in the buffer from from on moves to its front; it grows where it is full. False is that nothing came, and end
// says why.
func (w *window) more(from int) bool {
	if from > 0 {
		rest := w.buf[from:w.n]
		if len(w.buf) > keepBuffer && len(rest) < linesBuffer {
			w.buf = make([]byte, min(linesBuffer, w.limit+1))
		}
		w.n = copy(w.buf, rest)
		w.i -= from
		w.base += int64(from)
	}
	if w.n == len(w.buf) || w.full && len(w.buf) < linesBuffer {
		grown := make([]byte, min(2*len(w.buf), w.limit+1))
		copy(grown, w.buf)
		w.buf = grown
	}
	for range maxEmptyReads {
		k, err := w.r.Read(w.buf[w.n:])
		w.n += k
		w.full = w.n == len(w.buf)
		if w.end = err; k > 0 || err != nil {
			return k > 0
		}
	}
	w.end = io.ErrNoProgress
	return false
}

// Lines cuts what it reads into lines. It holds one line, and at most limit bytes of it. It is for one goroutine.
type Lines struct {
	window
	offset int64
	line   int
	torn   bool
}

// NewLines returns a reader of the lines of r, which are at most limit bytes long with their newline.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{window: window{r: r, limit: limit, buf: make([]byte, min(firstBuffer, limit+1))}}
}

// Next returns the next line with its newline, valid until the next call. What stands behind the last newline comes as a line
// too, and Torn then says that nothing ends it. The error is io.EOF, a *LongLineError, or that of the reader, and stays.
func (l *Lines) Next() ([]byte, error) {
	seen := l.i
	for {
		if k := bytes.IndexByte(l.buf[seen:l.n], '\n'); k >= 0 {
			return l.take(seen + k + 1)
		}
		seen = l.n - l.i
		if seen > l.limit {
			l.line++
			l.offset = l.base + int64(l.i)
			return nil, l.long()
		}
		if l.end != nil {
			return l.rest()
		}
		l.more(l.i)
	}
}

// take gives the bytes until end.
func (l *Lines) take(end int) ([]byte, error) {
	b := l.buf[l.i:end]
	l.line++
	l.offset = l.base + int64(l.i)
	if len(b) > l.limit {
		return nil, l.long()
	}
	l.i = end
	return b, nil
}

func (l *Lines) long() error {
	l.end = &LongLineError{Line: l.line, Offset: l.offset, Limit: l.limit}
	l.i, l.n = 0, 0
	return l.end
}

// rest gives what stands behind the last newline, once.
func (l *Lines) rest() ([]byte, error) {
	if l.i == l.n || !errors.Is(l.end, io.EOF) {
		return nil, l.end
	}
	l.torn = true
	return l.take(l.n)
}

// Line returns the number of the line that Next gave last, from 1.
func (l *Lines) Line() int { return l.line }

// Offset returns where that line begins, in bytes.
func (l *Lines) Offset() int64 { return l.offset }

// Torn reports whether no newline ended that line: it is the last one.
func (l *Lines) Torn() bool { return l.torn }
