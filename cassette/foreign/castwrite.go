package foreign

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
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
	w.buf = fmt.Appendf(w.buf, ", \"%c\", ", kind)
	w.buf = append(w.buf, visible.JSON(string(jsonscan.AppendText(nil, string(data))))...) // what is not to be printed is escaped
	w.buf = append(w.buf, "]\n"...)
	_, err := w.w.Write(w.buf)
	return err
}

func (w *Writer) appendTime(b []byte) []byte {
	if w.version == 2 {
		us := w.last.Microseconds()
		return fmt.Appendf(b, "%d.%06d", us/1e6, us%1e6)
	}
	now := w.last.Round(time.Millisecond).Milliseconds()
	step := now - w.written
	w.written = now
	return fmt.Appendf(b, "%d.%03d", step/1e3, step%1e3)
}
