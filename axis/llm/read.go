package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// read reads an object: each place is filled with the value of the key before it. A key without a place, and a value of another
// kind than its place, are stepped over: a conversation with something in it that nobody knows is read as far as it is known.
//
//	*string    a string, "" for anything else
//	*saying    a string, which is appended
//	*[]byte    any value, as it stands
//	*bool      whether it is true
//	*blockKey  a number that counts, as a key
//	func()     reads the value itself
func read(s *jsonscan.Scanner, keysAndPlaces ...any) {
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		key, i := s.Key(), 0
		for i < len(keysAndPlaces) && string(key) != keysAndPlaces[i].(string) {
			i += 2
		}
		if i == len(keysAndPlaces) {
			s.Skip()
			continue
		}
		switch place := keysAndPlaces[i+1].(type) {
		case *string:
			*place = readText(s)
		case *saying:
			place.read(s)
		case *[]byte:
			*place = s.Raw()
		case *bool:
			*place = string(s.Raw()) == "true"
		case *blockKey:
			*place = readBlockKey(s)
		case func():
			place()
		default:
			panic("llm: a place that read does not know")
		}
	}
}

// readIn is read of a value that was cut out before; nil fills nothing.
func readIn(raw []byte, keysAndPlaces ...any) {
	if raw == nil {
		return
	}
	var s jsonscan.Scanner
	s.Reset(raw)
	read(&s, keysAndPlaces...)
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

// members reads the members of a JSON object; false where b is none, or is none that holds. The values are parts of b, a key is valid
// during the call.
func members(b []byte, each func(key, value []byte)) bool {
	var s jsonscan.Scanner
	s.Reset(b)
	if s.Peek() != '{' {
		return false
	}
	for s.Begin('{'); s.More('}'); {
		key := s.Key()
		each(key, s.Raw())
	}
	return s.End() == nil
}

// elementsOf gives the elements of a JSON list to each; anything else has none.
func elementsOf(list []byte, each func(value []byte)) {
	within(list, func(s *jsonscan.Scanner) {
		readList(s, func() { each(s.Raw()) })
	})
}

// readText reads a string; "" for anything else.
func readText(s *jsonscan.Scanner) string {
	if s.Peek() != '"' {
		s.Skip()
		return ""
	}
	return s.Text()
}

// A saying is a text that comes in pieces.
type saying []byte

// read appends the string that comes next; anything else is stepped over.
func (t *saying) read(s *jsonscan.Scanner) {
	if s.Peek() != '"' {
		s.Skip()
		return
	}
	*t = append(*t, s.TextBytes()...)
}

// A blockKey is what a stream calls a block by: an index or an id; "" for none.
type blockKey string

// further reports whether a choice with such an index is none but the first.
func (k blockKey) further() bool { return k != "" && k != "0" && k != "-1" }

// readBlockKey reads an index; "-1" for what is none.
func readBlockKey(s *jsonscan.Scanner) blockKey {
	raw := s.Raw()
	for _, c := range raw {
		if c < '0' || c > '9' || len(raw) > 7 {
			return "-1"
		}
	}
	return blockKey(raw)
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

// joinTexts reads a string, or a list of blocks with texts.
func joinTexts(s *jsonscan.Scanner) string {
	if s.Peek() != '[' {
		return readText(s)
	}
	var texts []string
	readList(s, func() {
		read(s, "text", func() {
			if text := readText(s); !strings.HasPrefix(text, claudeBilling) {
				texts = append(texts, text)
			}
		})
	})
	return strings.Join(texts, "\n")
}

// textsIn is joinTexts of a value that was cut out before.
func textsIn(raw []byte) (text string) {
	within(raw, func(s *jsonscan.Scanner) { text = joinTexts(s) })
	return text
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

// isEmpty reports whether raw is no list, or one without elements.
func isEmpty(raw []byte) bool {
	empty := true
	elementsOf(raw, func([]byte) { empty = false })
	return empty
}

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
	elementsOf(content, func(block []byte) {
		n++
		only = textBlockOf(block)
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
	more := false
	whole := members(block, func(key, value []byte) {
		switch string(key) {
		case "text":
			text = value
		case "type", "cache_control":
		default:
			more = true
		}
	})
	if !whole || more || !isText(text) {
		return nil
	}
	return text
}
