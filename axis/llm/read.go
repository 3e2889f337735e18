package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// What nobody knows is stepped over: a conversation with something in it that is new is read as far as it is known. See jsonscan.Into.

// fill reads a value that was cut out before into a struct; nil fills nothing.
func fill(raw []byte, to any) {
	if raw != nil {
		var s jsonscan.Scanner
		s.Reset(raw)
		jsonscan.Into(&s, to)
	}
}

// fillWhole is fill of a message; false where it is no JSON object, whatever its opcode: Gemini's servers send theirs as binary.
func fillWhole(message []byte, to any) bool {
	if head := bytes.TrimLeft(message, " \t\r\n"); !isObject(head) {
		return false
	}
	var s jsonscan.Scanner
	s.Reset(message)
	jsonscan.Into(&s, to)
	return s.End() == nil
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

// elements returns the elements of a JSON list, which are parts of it; anything else has none.
func elements(list []byte) (out [][]byte) {
	var s jsonscan.Scanner
	s.Reset(list)
	if s.Peek() != '[' {
		return nil
	}
	for s.Begin('['); s.More(']'); {
		if raw := s.Raw(); raw != nil {
			out = append(out, raw)
		}
	}
	return out
}

// A saying is a text that comes in pieces.
type saying []byte

// ReadJSON implements jsonscan.Value: it appends the string that comes next.
func (t *saying) ReadJSON(s *jsonscan.Scanner) {
	if s.Peek() != '"' {
		s.Skip()
		return
	}
	*t = append(*t, s.TextBytes()...)
}

// A blockKey is what a stream calls a block by: an index or an id; "" for none.
type blockKey string

// further reports whether a choice with such an index is none but the first.
func (k blockKey) further() bool { return k != "" && k != "0" && k != noIndex }

// noIndex is an index that is none.
const noIndex blockKey = "-1"

// ReadJSON implements jsonscan.Value.
func (k *blockKey) ReadJSON(s *jsonscan.Scanner) {
	raw := s.Raw()
	for _, c := range raw {
		if c < '0' || c > '9' || len(raw) > 7 {
			*k = noIndex
			return
		}
	}
	*k = blockKey(raw)
}

// textsIn returns the text that raw is; of a list of blocks their texts.
func textsIn(raw []byte) string {
	if len(raw) == 0 || raw[0] != '[' {
		return textIn(raw)
	}
	var texts []string
	for _, block := range elements(raw) {
		var b struct {
			Text []byte `json:"text"`
		}
		if fill(block, &b); b.Text != nil {
			if text := textIn(b.Text); !strings.HasPrefix(text, claudeBilling) {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// textIn returns the string that raw is; "" for anything else.
func textIn(raw []byte) string {
	if !isText(raw) {
		return ""
	}
	var s jsonscan.Scanner
	s.Reset(raw)
	return s.Text()
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

// latest returns now, or was where now is nil.
func latest(was, now []byte) []byte {
	if now == nil {
		return was
	}
	return now
}
