package sessionlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// MaxEntry is the longest entry, in bytes with the white space around it, that a Reader takes.
const MaxEntry = 128 << 20

// ReaderOptions say how a log is read. Nil and zero work.
type ReaderOptions struct {
	// Tolerant drops a torn end, which is what a crash leaves; Torn then says so. The default is ErrTorn.
	Tolerant bool
}

// A Reader reads a log entry by entry, of any form: a line each, or the elements of one list. It holds one entry, never the
// log. Order is not its business: it yields what stands there, and Order says what was odd about it. It is for one goroutine.
type Reader struct {
	name  string
	opts  ReaderOptions
	from  *bufio.Reader
	in    source // nil before the first entry
	p     entryParser
	e     Entry
	order Order
	torn  *Torn
	err   error // what ended the log, io.EOF too
}

// A Torn is the end of a log that a crash left, which was dropped.
type Torn struct {
	Line   int   // where it begins, from 1
	Offset int64 // the same in bytes
}

// A source cuts a log into its entries.
type source interface {
	// next fills in before, raw, after, Line and Offset of e. The error is io.EOF at the end, io.ErrUnexpectedEOF where
	// that is torn, or what keeps the rest from being read; e then says where.
	next(e *Entry) error
	// tail is what stands behind the last entry.
	tail(torn bool) []byte
}

// NewReader returns a reader of the log in r; name stands for it in errors.
func NewReader(r io.Reader, name string, o *ReaderOptions) *Reader {
	t := &Reader{name: name, from: bufio.NewReader(r)}
	if o != nil {
		t.opts = *o
	}
	return t
}

// Entries yields the entries in the order in which they stand, the records of older producers too. Ranging again goes on
// behind the entry that was yielded last. An entry is valid until the next one; Clone keeps it. An error, which is a
// *LoadError or that of the underlying reader, is the last thing yielded.
func (r *Reader) Entries() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for r.err == nil {
			e, err := r.read()
			if errors.Is(err, io.EOF) || !yield(e, err) {
				return
			}
		}
	}
}

// Events yields the events with their entries, and passes over records. What Entries says holds; an event is the caller's to
// keep.
func (r *Reader) Events() iter.Seq2[*Entry, Event] { return r.events }

func (r *Reader) events(yield func(*Entry, Event) bool) {
	for e, err := range r.Entries() {
		if err != nil || e.Form == FormRecord {
			continue
		}
		event, err := e.Event()
		if err != nil {
			r.fail(err)
			return
		}
		if !yield(e, event) {
			return
		}
	}
}

// Err returns what ended the log before its end: a *LoadError, or the error of the underlying reader.
func (r *Reader) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// Order returns what is odd about the order of the entries read so far.
func (r *Reader) Order() Order { return r.order }

// Torn returns the torn end that was dropped, nil for none. It is known once the entries have come to their end.
func (r *Reader) Torn() *Torn { return r.torn }

// Tail returns what stands behind the last entry: blank lines, the end of the list, which is made where it was torn off. It is
// known once the entries have come to their end.
func (r *Reader) Tail() []byte {
	if r.in == nil {
		return nil
	}
	return r.in.tail(r.torn != nil)
}

// read returns the next entry, or what ends the log.
func (r *Reader) read() (*Entry, error) {
	if r.in == nil {
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	e := &r.e
	*e = Entry{}
	if err := r.in.next(e); err != nil {
		return nil, r.ends(err)
	}
	if err := r.p.parse(e); err != nil {
		return nil, r.fail(err)
	}
	r.order.see(e)
	return e, nil
}

// begin finds out what the log is: a list, or lines. So much white space that no log begins so is read as lines.
func (r *Reader) begin() error {
	first := byte(' ')
	for n := 1; n <= r.from.Size() && strings.IndexByte(space, first) >= 0; n++ {
		head, err := r.from.Peek(n)
		if err != nil && !errors.Is(err, io.EOF) {
			r.err = fmt.Errorf("%s: %w", r.name, err)
			return r.err
		}
		if err != nil {
			break
		}
		first = head[n-1]
	}
	if first == '[' {
		r.in = &listSource{s: jsonscan.NewStream(r.from, MaxEntry)}
	} else {
		r.in = &lineSource{lines: jsonscan.NewLines(r.from, MaxEntry)}
	}
	return nil
}

// ends is what becomes of an error of the source.
func (r *Reader) ends(err error) error {
	var long *jsonscan.LongLineError
	var syntax *jsonscan.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		r.err = io.EOF
		return r.err
	case errors.As(err, &long):
		return r.fail(ErrLineTooLong)
	case errors.Is(err, io.ErrUnexpectedEOF) && r.opts.Tolerant:
		r.torn = &Torn{Line: r.e.Line, Offset: r.e.Offset}
		r.err = io.EOF
		return r.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return r.fail(ErrTorn)
	case errors.As(err, &syntax):
		return r.fail(fmt.Errorf("%w: %w", ErrNotJSON, err))
	}
	r.err = fmt.Errorf("%s: %w", r.name, err)
	return r.err
}

// fail ends the log with what is wrong with the entry read last.
func (r *Reader) fail(err error) error {
	r.err = r.failure(err)
	return r.err
}

// failure says where the entry stands that err is about.
func (r *Reader) failure(err error) *LoadError {
	return &LoadError{Path: r.name, Line: r.e.Line, Offset: r.e.Offset, Err: err}
}

// space is the white space of JSON.
const space = " \t\r\n"

// A lineSource is a log of an entry a line.
type lineSource struct {
	lines *jsonscan.Lines
	blank []byte // the blank lines before the next entry
}

func (l *lineSource) next(e *Entry) error {
	l.blank = l.blank[:0]
	for {
		b, err := l.lines.Next()
		e.Line, e.Offset = l.lines.Line(), l.lines.Offset()
		if err != nil {
			return err
		}
		value := bytes.Trim(b, space)
		if len(value) == 0 {
			if len(l.blank)+len(b) > MaxEntry {
				return &jsonscan.LongLineError{Line: e.Line, Offset: e.Offset, Limit: MaxEntry}
			}
			l.blank = append(l.blank, b...)
			continue
		}
		if l.lines.Torn() && jsonscan.Valid(value) != nil {
			return io.ErrUnexpectedEOF // whole JSON without a newline is taken: not every producer writes the last one
		}
		at := bytes.IndexByte(b, value[0])
		e.raw, e.after = value, b[at+len(value):]
		if e.before = b[:at]; len(l.blank) > 0 {
			l.blank = append(l.blank, e.before...)
			e.before = l.blank
		}
		return nil
	}
}

func (l *lineSource) tail(bool) []byte { return l.blank }

// A listSource is a log that is one list.
type listSource struct {
	s     *jsonscan.Stream
	began bool
	some  bool // an element came
	end   []byte
}

func (l *listSource) next(e *Entry) error {
	s := l.s
	e.Line, e.Offset = s.Line(), s.Offset()
	s.Hold()
	if !l.began {
		l.began = true
		s.Begin('[')
	}
	if !s.More(']') {
		return l.finish(e)
	}
	s.Peek()
	line, offset := s.Line(), s.Offset()
	raw := s.Raw()
	held := s.Held()
	if err := s.Err(); err != nil {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			e.Line, e.Offset = line, offset
		}
		return err
	}
	e.Line, e.Offset, l.some = line, offset, true
	e.before, e.raw = held[:len(held)-len(raw)], raw
	return nil
}

// finish reads what stands behind the list.
func (l *listSource) finish(e *Entry) error {
	if err := l.s.End(); err != nil {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			e.Line, e.Offset = l.s.Line(), l.s.Offset()
		}
		return err
	}
	l.end = append(l.end, l.s.Held()...)
	return io.EOF
}

func (l *listSource) tail(torn bool) []byte {
	switch {
	case !torn:
		return l.end
	case l.some:
		return []byte("]\n")
	}
	return []byte("[]\n")
}

// Order is what is odd about the order of a log's entries. Zero is a log in order: seq runs 0, 1, 2 … over all entries of
// which any has one. A log that is out of order still loads.
type Order struct {
	Entries  int       // entries seen
	Events   int       // of them, events
	Numbered int       // of them, with a seq
	Gaps     int       // entries whose seq is higher than the one that was due
	Back     int       // entries whose seq is lower
	First    *Disorder // the first of these

	due uint64
}

// A Disorder is an entry out of order.
type Disorder struct {
	Line      int
	Want, Got uint64
}

func (d *Disorder) String() string {
	return fmt.Sprintf("line %d: seq is %d, want %d", d.Line, d.Got, d.Want)
}

func (o *Order) see(e *Entry) {
	o.Entries++
	if e.Form != FormRecord {
		o.Events++
	}
	if !e.HasSeq {
		if o.Numbered == 0 {
			o.due++
		}
		return
	}
	if o.Numbered == 0 {
		o.due = 0
	}
	o.Numbered++
	if e.Seq != o.due && o.First == nil {
		o.First = &Disorder{Line: e.Line, Want: o.due, Got: e.Seq}
	}
	switch {
	case e.Seq > o.due:
		o.Gaps++
	case e.Seq < o.due:
		o.Back++
	}
	o.due = max(o.due, e.Seq+1)
}
