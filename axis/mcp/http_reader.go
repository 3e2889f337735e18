package mcp

import (
	"bytes"
	"mime"
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// maxUnit bounds, in bytes, an event or a JSON answer that is held to be read. A longer one, and what follows it, is not read: it
// stands in the exchange alone.
const maxUnit = 64 << 20

// An answerReader finds the messages in an answer.
type answerReader interface {
	// take takes what came next, and calls f for each part of the answer that is whole with it, which holds one line at most.
	take(b []byte, ended bool, f func(u *unit) error) error
	// idle reports whether it looks for nothing any more.
	idle() bool
}

// readerOf is what finds the messages in an answer with the header h to a request of a method; nil where it holds none.
func readerOf(method string, h http.Header) answerReader {
	var plain answerReader
	switch kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); {
	case kind == typeEvents:
		plain = new(eventReader)
	case kind == typeJSON && method == http.MethodPost:
		plain = new(jsonReader)
	}
	if encoding := h.Get("Content-Encoding"); plain != nil && encoding != "" && encoding != "identity" {
		return &packedReader{encoding: encoding, plain: plain}
	}
	return plain
}

// A unit is a part of an answer that holds a line at most: an event, or a whole JSON answer.
type unit struct {
	raw   []byte
	event *webEvent // nil of JSON
	after bool      // what stands behind the JSON value
}

// data is the line, "" for none.
func (u *unit) data() []byte {
	switch {
	case u.after:
		return nil
	case u.event == nil:
		return u.raw
	case u.event.isMessage() || u.event.name == "endpoint":
		return u.event.data
	}
	return nil
}

// edited returns the bytes of the unit and its line with changes made to the line.
func (u *unit) edited(edits []edit) (raw, line []byte) {
	if u.event == nil {
		b := applyEdits(u.raw, edits)
		return b, b
	}
	return u.event.put(u.raw, edits), applyEdits(u.event.data, edits)
}

// eventReader reads server-sent events.
type eventReader struct {
	cut eventCutter
	buf []byte // of the event that is not whole
	off bool   // an event was too long
}

func (r *eventReader) take(b []byte, ended bool, f func(u *unit) error) error {
	for len(b) > 0 && !r.off {
		n, whole := r.cut.next(b)
		raw := b[:n]
		if b = b[n:]; len(r.buf) > 0 || !whole {
			r.buf = append(r.buf, raw...)
			raw = r.buf
		}
		if r.off = len(raw) > maxUnit; r.off {
			r.buf = nil
			return nil
		}
		if whole {
			err := f(newUnit(raw))
			if r.buf = r.buf[:0]; err != nil {
				return err
			}
		}
	}
	if ended && len(r.buf) > 0 { // clients differ on an event that no empty line ends
		raw := r.buf
		r.buf = nil
		return f(newUnit(raw))
	}
	return nil
}

func (r *eventReader) idle() bool { return r.off }

func newUnit(raw []byte) *unit {
	e := readEvent(raw)
	return &unit{raw: raw, event: &e}
}

// jsonReader reads an answer that is one JSON value.
type jsonReader struct {
	end  valueEnd
	buf  []byte
	done bool
}

func (r *jsonReader) take(b []byte, ended bool, f func(u *unit) error) error {
	if r.done {
		return nil
	}
	n, whole := r.end.in(b)
	rest := b[n:]
	if len(bytes.TrimSpace(rest)) == 0 { // belongs to the value, in the same chunk
		n, rest = len(b), nil
	}
	r.buf = append(r.buf, b[:n]...)
	if r.done = whole || ended || len(r.buf) > maxUnit; !r.done || len(bytes.TrimSpace(r.buf)) == 0 || len(r.buf) > maxUnit {
		return nil
	}
	raw := r.buf
	r.buf = nil
	if err := f(&unit{raw: raw}); err != nil || len(rest) == 0 {
		return err
	}
	return f(&unit{raw: rest, after: true})
}

func (r *jsonReader) idle() bool { return r.done }

// valueEnd finds the end of an object or a list that comes in pieces, by its brackets and quotes.
type valueEnd struct {
	depth          int
	quoted, escape bool
}

// in returns how much of b belongs to the value, and whether it ends there.
func (v *valueEnd) in(b []byte) (n int, ends bool) {
	for i, c := range b {
		switch {
		case v.escape:
			v.escape = false
		case v.quoted && c == '\\':
			v.escape = true
		case c == '"':
			v.quoted = !v.quoted
		case v.quoted:
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			if v.depth--; v.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(b), false
}

// packedReader reads an answer with a Content-Encoding, which can be read at its end alone.
type packedReader struct {
	encoding string
	plain    answerReader
	buf      []byte
}

func (r *packedReader) take(b []byte, ended bool, f func(u *unit) error) error {
	if len(r.buf)+len(b) <= maxUnit {
		r.buf = append(r.buf, b...)
	}
	if !ended || len(r.buf) == 0 {
		return nil
	}
	packed := r.buf
	r.buf = nil
	plain, err := exchange.Decode(r.encoding, packed, maxUnit)
	if err != nil {
		return nil // the exchange says so
	}
	return r.plain.take(plain, true, f)
}

func (r *packedReader) idle() bool { return false }

// An eventCutter cuts a stream of server-sent events (text/event-stream) where an event is whole: behind the empty line that ends
// it. A line ends with CR, LF or both.
type eventCutter struct {
	line int  // bytes of the line so far
	cr   bool // the last byte was a CR: an LF that follows belongs to it
}

// next returns how many bytes of b belong to the event that b goes on with, and whether that is whole then; all of b where not.
func (c *eventCutter) next(b []byte) (n int, whole bool) {
	for n < len(b) {
		i := bytes.IndexAny(b[n:], "\r\n")
		if i < 0 {
			c.line += len(b) - n
			c.cr = false
			return len(b), false
		}
		if i > 0 {
			c.line, c.cr = c.line+i, false
			n += i
		}
		if b[n] == '\n' && c.cr {
			c.cr = false
			n++
			continue
		}
		empty := c.line == 0
		c.line, c.cr = 0, b[n] == '\r'
		n++
		if empty {
			return n, true
		}
	}
	return n, false
}

// A webEvent is one server-sent event.
type webEvent struct {
	name string // "" for none, which means "message"
	id   string
	data []byte // its data lines, joined by LF
	// parts says where in the raw event the data stands, line by line; nil where it has none.
	parts []dataPart
}

// dataPart is one data line: bytes [at, at+n) of the event's data stand at raw.
type dataPart struct{ at, n, raw int }

// readEvent reads a whole event. It never fails: what is no field says nothing, as the standard has it.
func readEvent(raw []byte) webEvent {
	var e webEvent
	for at := 0; at < len(raw); {
		end := len(raw)
		if i := bytes.IndexAny(raw[at:], "\r\n"); i >= 0 {
			end = at + i
		}
		e.field(raw, at, end)
		at = end + 1
	}
	return e
}

// field reads the line of raw from at to end.
func (e *webEvent) field(raw []byte, at, end int) {
	line := raw[at:end]
	if at == 0 {
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		e.name = string(value)
	case "id":
		e.id = string(value)
	case "data":
		if len(e.parts) > 0 {
			e.data = append(e.data, '\n')
		}
		e.parts = append(e.parts, dataPart{at: len(e.data), n: len(value), raw: end - len(value)})
		e.data = append(e.data, value...)
	}
}

// isMessage reports whether the data is a message's: only those of events without a name, or with that of messages, are read by
// all clients.
func (e *webEvent) isMessage() bool {
	return len(e.data) > 0 && (e.name == "" || e.name == "message")
}

// put returns raw with changes that were made to its data. Those must be sorted; one that no data line holds whole is left out.
func (e *webEvent) put(raw []byte, edits []edit) []byte {
	var out []byte
	done := 0
	for _, c := range edits {
		i := slices.IndexFunc(e.parts, func(p dataPart) bool { return p.at <= c.start && c.end <= p.at+p.n })
		if i < 0 {
			continue
		}
		shift := e.parts[i].raw - e.parts[i].at
		out = append(append(out, raw[done:c.start+shift]...), c.text...)
		done = c.end + shift
	}
	return append(out, raw[done:]...)
}
