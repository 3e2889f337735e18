package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// What is edited here is JSON of others too: keys that are not known, their order and how numbers are written stay.

// member returns where the value of a key stands in an object: from start to before end; 0, 0 where there is none. The last of
// several counts, as for a reader.
func member(object []byte, key string) (start, end int64, err error) {
	var s jsonscan.Scanner
	s.Reset(object)
	for s.Begin('{'); s.More('}'); {
		name := string(s.Key())
		if v := s.Raw(); strings.EqualFold(name, key) {
			end = int64(s.Offset())
			start = end - int64(len(v))
		}
	}
	if err := s.Err(); err != nil {
		return 0, 0, fmt.Errorf("%w in %.40q", err, object)
	}
	return start, end, nil
}

// edit replaces the value of a key by what f makes of it. Where the key is absent nothing changes.
func edit(object []byte, key string, f func(value []byte) ([]byte, error)) ([]byte, error) {
	start, end, err := member(object, key)
	if err != nil || end == 0 {
		return object, err
	}
	value, err := f(object[start:end])
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{object[:start], value, object[end:]}, nil), nil
}

// set replaces the value of a key that is there.
func set(object []byte, key string, v any) ([]byte, error) {
	return edit(object, key, func([]byte) ([]byte, error) { return jsonscan.Marshal(v) })
}

// mapStrings replaces each string of a JSON value by what f makes of it; keys of objects are strings too. f keeps the length. It is
// given a member's value behind its key, "key: value", for a name may say that it is a secret. White space and all the rest stay.
func mapStrings(value []byte, f func(string) string) ([]byte, error) {
	var out []byte
	last := ""
	for len(value) > 0 {
		i := bytes.IndexByte(value, '"')
		if i < 0 {
			break
		}
		end := stringEnd(value[i:])
		if end < 0 {
			return nil, fmt.Errorf("a string without an end in %.40q", value)
		}
		name := ""
		if string(bytes.TrimSpace(value[:i])) == ":" {
			name = last + ": "
		}
		out = append(out, value[:i]...)
		literal := value[i : i+end]
		value = value[i+end:]
		var s string
		if err := json.Unmarshal(literal, &s); err != nil {
			return nil, err
		}
		last = s
		if t := f(name + s)[len(name):]; t != s {
			b, err := jsonscan.Marshal(t)
			if err != nil {
				return nil, err
			}
			literal = b
		}
		out = append(out, literal...)
	}
	return append(out, value...), nil
}

// stringEnd returns the length of the string literal that b begins with, -1 where it has no end.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
