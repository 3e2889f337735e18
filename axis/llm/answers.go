package llm

import (
	"bytes"
	"encoding/json"
	"iter"
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
	case head[0] == '{':
		return documents(head)
	case head[0] == '[':
		return elements(head)
	default:
		return events(body)
	}
}

// documents yields the JSON values that stand one after another: one, or the lines of NDJSON.
func documents(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dec := json.NewDecoder(bytes.NewReader(body))
		for {
			var document json.RawMessage
			if dec.Decode(&document) != nil || !yield(document) {
				return
			}
		}
	}
}

// elements yields the elements of a JSON array.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dec := json.NewDecoder(bytes.NewReader(array))
		if _, err := dec.Token(); err != nil {
			return
		}
		for dec.More() {
			var element json.RawMessage
			if dec.Decode(&element) != nil || !yield(element) {
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
