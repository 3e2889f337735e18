package foreign

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// A Writer writes an asciicast.
//
// Version 2 has the time since the beginning, to the microsecond; version 3 the time since the event before, to the millisecond,
// with what rounding took carried into the next. A UTF-8 sequence that is cut by the end of a chunk goes out with the next chunk.
type Writer struct {
	w       *bufio.Writer
	version int
	last    time.Duration // of the event before
	written int64         // ms, the sum of the intervals of version 3
	texts   map[Kind]*text
	buf     []byte
	outside int
}

// NewWriter writes the header. version is 2 or 3; the header must have a size.
func NewWriter(w io.Writer, version int, h *Header) (*Writer, error) {
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("asciicast version %d cannot be written: want 2 or 3", version)
	}
	if err := checkSize(h.Rows, h.Cols); err != nil {
		return nil, err
	}
	out := &Writer{w: bufio.NewWriterSize(w, 64<<10), version: version}
	out.texts = map[Kind]*text{Output: {}, Input: {}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // it ends the line
	enc.SetEscapeHTML(false)
	if err := enc.Encode(newCastHeader(h, version)); err != nil {
		return nil, err
	}
	_, err := out.w.Write(b.Bytes())
	return out, err
}

// Write adds an event, whose time must not be before that of the last. A Signal has no place in an asciicast and is counted as
// left out; so is an Exit in version 2.
func (w *Writer) Write(e *Event) error {
	if e.At < w.last {
		return fmt.Errorf("an event at %v after one at %v", e.At, w.last)
	}
	w.last = e.At
	switch e.Kind {
	case Output, Input:
		b := w.texts[e.Kind].add(e.Data)
		if len(b) == 0 && len(e.Data) > 0 {
			return nil // it goes out with the next chunk
		}
		return w.event(e.Kind, b)
	case Marker:
		return w.event(Marker, bytes.ToValidUTF8(e.Data, []byte("\uFFFD")))
	case Resize:
		return w.event(Resize, fmt.Appendf(nil, "%dx%d", e.Cols, e.Rows))
	case Exit:
		if w.version == 3 {
			return w.exit(e)
		}
	}
	w.outside++
	return nil
}

func (w *Writer) exit(e *Event) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.event(Exit, strconv.AppendInt(nil, int64(e.Code), 10))
}

// Close writes what is still held. It does not close the writer below. Nothing may be written after it.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.w.Flush()
}

// flush writes unfinished sequences, as U+FFFD.
func (w *Writer) flush() error {
	for _, kind := range []Kind{Output, Input} {
		if b := w.texts[kind].end(); len(b) > 0 {
			if err := w.event(kind, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Replaced is how many bytes, or beginnings of UTF-8 sequences, became U+FFFD.
func (w *Writer) Replaced() int { return w.texts[Output].replaced + w.texts[Input].replaced }

// LeftOut is how many events the format has no place for.
func (w *Writer) LeftOut() int { return w.outside }

func (w *Writer) event(kind Kind, data []byte) error {
	w.buf = append(w.buf[:0], '[')
	w.buf = w.appendTime(w.buf)
	w.buf = append(w.buf, ", \""...)
	w.buf = append(w.buf, byte(kind))
	w.buf = append(w.buf, "\", "...)
	w.buf = appendString(w.buf, data)
	w.buf = append(w.buf, "]\n"...)
	_, err := w.w.Write(w.buf)
	return err
}

func (w *Writer) appendTime(b []byte) []byte {
	if w.version == 2 {
		us := w.last.Microseconds()
		return appendFraction(b, us/1e6, us%1e6, 6)
	}
	now := w.last.Round(time.Millisecond).Milliseconds()
	step := now - w.written
	w.written = now
	return appendFraction(b, step/1e3, step%1e3, 3)
}

// appendFraction writes whole.rest with so many digits.
func appendFraction(b []byte, whole, rest int64, digits int) []byte {
	b = append(strconv.AppendInt(b, whole, 10), '.')
	for n := digits - 1; n >= 0; n-- {
		unit := int64(1)
		for range n {
			unit *= 10
		}
		b = append(b, byte('0'+rest/unit%10))
	}
	return b
}

// appendString writes data, which is valid UTF-8, as a JSON string. What is not to be printed is escaped.
func appendString(b, data []byte) []byte {
	b = append(b, '"')
	for len(data) > 0 {
		n := 0
		for n < len(data) && plain(data[n]) {
			n++
		}
		b = append(b, data[:n]...)
		if data = data[n:]; len(data) == 0 {
			break
		}
		r, size := utf8.DecodeRune(data)
		data = data[size:]
		b = appendRune(b, r)
	}
	return append(b, '"')
}

func plain(c byte) bool { return c >= ' ' && c < 0x7f && c != '"' && c != '\\' }

func appendRune(b []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029:
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return utf8.AppendRune(b, r)
}
