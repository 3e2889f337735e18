package script

import (
	"fmt"

	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

// jsonModule is `json`: encode and decode. Members keep their order; nesting ends at maxDepth.
func (r *run) jsonModule() starlark.Value {
	return &namespace{name: "json", members: starlark.StringDict{
		"encode": starlark.NewBuiltin("json.encode", r.jsonEncode),
		"decode": starlark.NewBuiltin("json.decode", r.jsonDecode),
	}}
}

func (r *run) jsonEncode(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	c := converter{budget: r.budget, strict: true, encode: true}
	v, err := c.value(x)
	if err != nil {
		return nil, fmt.Errorf("json.encode: %w", err)
	}
	text, err := host.Encode(v)
	if err != nil {
		return nil, err
	}
	return starlark.String(text), nil
}

func (r *run) jsonDecode(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if text, ok := first(args).(starlark.String); ok {
		deepest, bytes := shapeOf(string(text))
		if err := r.budget.alloc(bytes, "the values of a JSON text"); err != nil {
			return nil, err
		}
		if deepest > maxDepth {
			return nil, fmt.Errorf("json.decode: %w", tooDeep())
		}
	}
	return decodeJSON.CallInternal(t, args, kwargs)
}

// decodeJSON is Starlark's own; it descends as far as the text does.
var decodeJSON = json.Module.Members["decode"].(*starlark.Builtin)

// What the parts of a JSON text take at most when they are read, in bytes: a dict has room for eight entries from the start.
const (
	dictBytes    = 640
	listBytes    = 64
	elementBytes = 64 // of a list that grows, with a short text or a number
)

// shapeOf is how deep brackets outside of strings stand in each other, and how much memory what they say will take.
func shapeOf(text string) (deepest int, bytes int64) {
	bytes = int64(len(text))
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			bytes += listBytes + elementBytes
			if text[i] == '{' {
				bytes += dictBytes
			}
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		case ',':
			bytes += elementBytes
		case ':':
			bytes += 3 * entryBytes // of a table that grows
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest, bytes
}
