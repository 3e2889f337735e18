package host

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// maxDepth is how deep values may be nested, as in package encoding/json; who goes through a value may recurse.
const maxDepth = 1000

// An Object is a JSON object whose members keep their order. No name stands in it twice.
type Object []Member

// A Member is one of an Object.
type Member struct {
	Name  string
	Value any
}

// Get returns the member of that name, nil where there is none.
func (o Object) Get(name string) any {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) { return appendObject(nil, o, 0) }

// Text returns b as a string where it is text, else as it is.
func Text(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return b
}

// Encode returns the JSON of a value. Bytes that are not UTF-8 in a string become U+FFFD. Errors: a type that is no value, a number
// that JSON does not have, nesting over 1,000 deep.
func Encode(v any) ([]byte, error) { return appendValue(nil, v, 0) }

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a value is nested over %d deep", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case []byte:
		return appendObject(dst, Object{{"base64", base64.StdEncoding.EncodeToString(v)}}, depth)
	case []any:
		return appendList(dst, v, depth)
	case Object:
		return appendObject(dst, v, depth)
	}
	return appendOther(dst, v)
}

// appendOther leaves to encoding/json what it writes as we want it.
func appendOther(dst []byte, v any) ([]byte, error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a value has no form in JSON: %w", err)
	}
	return append(dst, b...), nil
}

func appendList(dst []byte, list []any, depth int) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, v, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, o Object, depth int) (_ []byte, err error) {
	dst = append(dst, '{')
	for i := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendOther(dst, o[i].Name); err != nil {
			return nil, err
		}
		if dst, err = appendValue(append(dst, ':'), o[i].Value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// Decode returns the one value of a JSON text. The text {"base64":"…"} is what Encode writes for []byte, and gives it back. Errors:
// no JSON, a name that stands twice in an object, nesting over 1,000 deep.
func Decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("json, byte %d: want the end of the text after its value", d.InputOffset())
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("json, byte %d: nested over %d deep", d.InputOffset(), maxDepth)
	}
	token, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("json, byte %d: %w", d.InputOffset(), err)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return decodeList(d, depth)
		}
		return decodeObject(d, depth)
	case json.Number:
		return number(token), nil
	}
	return token, nil
}

func decodeList(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, closing(d)
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	o, seen := Object{}, map[string]bool{}
	for d.More() {
		name, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		key, ok := name.(string)
		if !ok || seen[key] {
			return nil, fmt.Errorf("json, byte %d: want a name that has not been before, got %v", d.InputOffset(), name)
		}
		seen[key] = true
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, Member{key, v})
	}
	return rawBytes(o), closing(d)
}

func closing(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("json, byte %d: %w", d.InputOffset(), err)
	}
	return nil
}

// rawBytes gives back what Encode wrote for []byte.
func rawBytes(o Object) any {
	if len(o) != 1 || o[0].Name != "base64" {
		return o
	}
	text, ok := o[0].Value.(string)
	if !ok {
		return o
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return o
	}
	return b
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil && bytes.ContainsAny([]byte(n), ".eE") {
		return f
	}
	return n
}
