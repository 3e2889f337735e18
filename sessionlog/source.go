package sessionlog

import (
	"bytes"
	"errors"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A lineSource is a log of an entry a line.
type lineSource struct {
	lines *jsonscan.Lines
	blank []byte // the blank lines before the next entry
}

func newLineSource(r io.Reader) *lineSource {
	return &lineSource{lines: jsonscan.NewLines(r, MaxEntry)}
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

func newListSource(r io.Reader) *listSource { return &listSource{s: jsonscan.NewStream(r, MaxEntry)} }

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
