package llm

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// The functions below read what they are for and step over everything else: a conversation with something in it that nobody
// knows is read as far as it is known.

// readObject gives the keys of an object to read, which reads the value or returns false.
func readObject(s *jsonscan.Scanner, read func(key []byte) bool) {
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		if key := s.Key(); !read(key) {
			s.Skip()
		}
	}
}

// readList calls each before every element of a list, which it must read.
func readList(s *jsonscan.Scanner, each func()) {
	if s.Peek() != '[' {
		s.Skip()
		return
	}
	for s.Begin('['); s.More(']'); {
		each()
	}
}

// readText reads a string; "" for anything else.
func readText(s *jsonscan.Scanner) string {
	if s.Peek() != '"' {
		s.Skip()
		return ""
	}
	return s.Text()
}

// readTrue reports whether true comes next.
func readTrue(s *jsonscan.Scanner) bool { return string(s.Raw()) == "true" }

// readIndex reads a number that counts; -1 for anything else.
func readIndex(s *jsonscan.Scanner) int {
	if c := s.Peek(); c < '0' || c > '9' {
		s.Skip()
		return -1
	}
	raw := s.Raw()
	n := 0
	for _, c := range raw {
		if c < '0' || c > '9' || n > 1<<20 {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// within reads a value that was cut out before; nil reads nothing.
func within(raw []byte, read func(s *jsonscan.Scanner)) {
	if raw == nil {
		return
	}
	var s jsonscan.Scanner
	s.Reset(raw)
	read(&s)
}

// textIn returns the string that raw is; "" for anything else.
func textIn(raw []byte) (text string) {
	within(raw, func(s *jsonscan.Scanner) { text = readText(s) })
	return text
}

// isText reports whether raw is a string.
func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// isObject reports whether raw is an object.
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// isNull reports whether raw is nothing.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// oneLine returns a JSON value without line breaks, which stand in white space alone.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 {
		return raw
	}
	return jsonscan.AppendLine(nil, raw)
}

// noText is the JSON of an empty text.
var noText = []byte(`""`)

// jsonText is a JSON string that leaves <, > and & alone.
func jsonText(s string) json.RawMessage { return marshal(s) }

// argumentsOf returns the arguments that a model wrote as text: the object that they are, else the text; nothing is an object
// without members.
func argumentsOf(text []byte) json.RawMessage {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return json.RawMessage("{}")
	}
	if isObject(trimmed) && jsonscan.Valid(trimmed) == nil {
		return oneLine(trimmed)
	}
	return jsonText(string(text))
}

// objectArguments returns arguments that a protocol holds as JSON.
func objectArguments(raw []byte) json.RawMessage {
	if isNull(raw) {
		return json.RawMessage("{}")
	}
	return oneLine(raw)
}

// outputOf returns what a tool gave: a string where it is one text, else the list of blocks.
func outputOf(content []byte) json.RawMessage {
	if isNull(content) {
		return noText
	}
	if content[0] != '[' {
		return oneLine(content)
	}
	n := 0
	var only []byte
	within(content, func(s *jsonscan.Scanner) {
		readList(s, func() {
			n++
			only = textBlockOf(s.Raw())
		})
	})
	switch {
	case n == 0:
		return noText
	case n == 1 && only != nil:
		return only
	}
	return oneLine(content)
}

// textBlockOf returns the string of a block that holds a text and nothing else; nil for any other.
func textBlockOf(block []byte) (text []byte) {
	plain := isObject(block)
	within(block, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "text":
				if text = s.Raw(); !isText(text) {
					plain = false
				}
				return true
			case "type", "cache_control":
			default:
				plain = false
			}
			return false
		})
	})
	if !plain {
		return nil
	}
	return text
}
