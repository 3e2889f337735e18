package llm

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A framing is how a provider puts the events of a stream one behind another. What reads them is answers.
type framing struct {
	contentType string
	frame       func(n int, name string, event any) []byte // of the n-th event, from 0
	end         string                                     // behind the last
}

var (
	namedEvents = framing{contentType: "text/event-stream; charset=utf-8", frame: func(_ int, name string, event any) []byte {
		return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, marshal(event))
	}}
	bareEvents = framing{contentType: "text/event-stream; charset=utf-8", frame: func(_ int, _ string, event any) []byte {
		return fmt.Appendf(nil, "data: %s\n\n", marshal(event))
	}, end: "data: [DONE]\n\n"}
	crlfEvents = framing{contentType: "text/event-stream", frame: func(_ int, _ string, event any) []byte {
		return fmt.Appendf(nil, "data: %s\r\n\r\n", marshal(event))
	}}
	jsonList = framing{contentType: "application/json; charset=UTF-8", frame: func(n int, _ string, event any) []byte {
		if n == 0 {
			return append([]byte("["), marshal(event)...)
		}
		return append([]byte("\n,\r\n"), marshal(event)...)
	}, end: "\n]\n"}
	jsonLines = framing{contentType: "application/x-ndjson", frame: func(_ int, _ string, event any) []byte {
		return append(marshal(event), '\n')
	}}
	eventStreams = framing{contentType: "application/vnd.amazon.eventstream", frame: func(_ int, name string, event any) []byte {
		return appendMessage(nil, name, marshal(event))
	}}
)

// answers yields the JSON texts of an answer: the payload of each message of an AWS event stream, the data of each
// server-sent event, the objects that stand one after another in NDJSON, the elements of a JSON array, or the one object
// that a plain answer is. What was cut yields its whole texts. The slices share body's memory, but for an event whose data
// stands on several lines.
func answers(body []byte) iter.Seq[[]byte] {
	if isEventStream(body) {
		return messagePayloads(body)
	}
	switch head := bytes.TrimLeft(body, " \t\r\n"); {
	case len(head) == 0:
		return func(func([]byte) bool) {}
	case head[0] == '{' || head[0] == '[':
		return documents(head)
	default:
		return events(body)
	}
}

// documents yields the elements of a JSON list, or the values that stand one after another: one, or the lines of NDJSON.
func documents(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var s jsonscan.Scanner
		s.Reset(body)
		list := s.Peek() == '['
		if list {
			s.Begin('[')
		}
		for list && s.More(']') || !list && s.Peek() != 0 {
			if text := s.Raw(); text == nil || !yield(text) {
				return
			}
		}
	}
}

// events yields the data of each server-sent event. An event that no blank line ended counts too: the upstream was cut.
func events(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var data []byte
		for len(body) > 0 {
			var line []byte
			line, body = nextLine(body)
			if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = appendData(data, bytes.TrimPrefix(value, []byte(" ")))
				continue
			}
			if len(line) == 0 && data != nil {
				if !yield(data) {
					return
				}
				data = nil
			}
		}
		if data != nil {
			yield(data)
		}
	}
}

// appendData adds one line to the data of an event.
func appendData(data, line []byte) []byte {
	if data == nil {
		return line[:len(line):len(line)]
	}
	return append(append(data, '\n'), line...)
}

// nextLine splits off a line; LF, CR and CRLF end one.
func nextLine(b []byte) (line, rest []byte) {
	i := bytes.IndexAny(b, "\r\n")
	switch {
	case i < 0:
		return b, nil
	case b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n':
		return b[:i], b[i+2:]
	default:
		return b[:i], b[i+1:]
	}
}
