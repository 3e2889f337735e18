package llm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
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

// The binary framing of application/vnd.amazon.eventstream, as the AWS SDKs describe it. A message is
//
//	total length   4 bytes, big endian, of all of it
//	headers length 4 bytes
//	prelude CRC    4 bytes, CRC-32 (IEEE) of the 8 before it
//	headers        as long as said
//	payload        what is left, but for
//	message CRC    4 bytes, CRC-32 of all before it
//
// Nothing is allocated: payloads are slices of the body. Time is linear in the body: see eventStream.budget.
const (
	preludeLen   = 12
	messageCRC   = 4
	maxMessage   = 24 << 20 // of a whole message; the services send 16 MiB at most
	maxHeaderLen = 128 << 10
)

// isEventStream reports whether a body begins with the prelude of a message.
func isEventStream(body []byte) bool {
	_, _, ok := prelude(body)
	return ok
}

// prelude reads the lengths of the message that begins a body.
func prelude(body []byte) (total, headers int, ok bool) {
	if len(body) < preludeLen || crc32.ChecksumIEEE(body[:8]) != binary.BigEndian.Uint32(body[8:]) {
		return 0, 0, false
	}
	t, h := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
	if t > maxMessage || h > maxHeaderLen || t < preludeLen+messageCRC+h {
		return 0, 0, false
	}
	return int(t), int(h), true
}

// messagePayloads yields the payload of each whole message.
func messagePayloads(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := newEventStream(body)
		for payload, ok := s.next(); ok && yield(payload); {
			payload, ok = s.next()
		}
	}
}

// An eventStream reads the messages of a body one after another.
type eventStream struct {
	rest []byte
	// budget is how many bytes of messages may still be summed. Every prelude that holds asks for the sum of what it
	// promises, and where that does not hold, the next one may stand a few bytes on: a body full of such preludes would
	// cost the square of its length. One of a service needs each byte once, and those behind a damaged message twice.
	budget int
	sum    func([]byte) uint32 // CRC-32; a test counts what it is given
}

// newEventStream returns the reader of a body.
func newEventStream(body []byte) eventStream {
	return eventStream{rest: body, budget: 2 * len(body), sum: crc32.ChecksumIEEE}
}

// next returns the payload of the next whole message; false at the end, and where the budget is spent. Behind a message
// that is damaged, as scrubbing damages the one that a secret stood in, it goes on with the next prelude that holds.
func (s *eventStream) next() (payload []byte, ok bool) {
	for ; len(s.rest) >= preludeLen; s.rest = s.rest[1:] {
		total, headers, ok := prelude(s.rest)
		if !ok || total > len(s.rest) {
			continue
		}
		if s.budget -= total; s.budget < 0 {
			return nil, false
		}
		if message := s.rest[:total]; s.intact(message) {
			s.rest = s.rest[total:]
			return message[preludeLen+headers : total-messageCRC], true
		}
	}
	return nil, false
}

// intact reports whether the CRC of a message holds.
func (s *eventStream) intact(message []byte) bool {
	end := len(message) - messageCRC
	return s.sum(message[:end]) == binary.BigEndian.Uint32(message[end:])
}

// appendMessage appends the message of an event, as Bedrock frames its answers.
func appendMessage(dst []byte, event string, payload []byte) []byte {
	var headers []byte
	for _, h := range [][2]string{{":event-type", event}, {":content-type", "application/json"}, {":message-type", "event"}} {
		const kindString = 7
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = binary.BigEndian.AppendUint16(append(headers, kindString), uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	from := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(preludeLen+len(headers)+len(payload)+messageCRC))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(headers)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:]))
	dst = append(append(dst, headers...), payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:]))
}
