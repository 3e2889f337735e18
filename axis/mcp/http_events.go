package mcp

import (
	"bytes"
	"slices"
)

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
	name  string // "" for none, which means "message"
	id    string
	hasID bool
	data  []byte // its data lines, joined by LF
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
		e.id, e.hasID = string(value), true
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
