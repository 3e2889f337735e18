package script

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

// universe are the built-in functions that ask for what they take, in place of Starlark's own, and the few names beside.
func (p *prelude) universe(into starlark.StringDict) {
	for name, c := range functions {
		into[name] = p.budget.charged(starlarkOwn(name), c)
	}
	into["print"] = starlark.NewBuiltin("print", p.print)
	into["fail"] = starlark.NewBuiltin("fail", p.fail)
	into["getattr"] = starlark.NewBuiltin("getattr", p.getattr)
	into["struct"] = starlark.NewBuiltin("struct", starlarkstruct.Make)
	into["json"] = p.jsonModule()
	into["True"], into["False"] = starlark.True, starlark.False // these have a place, the language's own none: where `while True:` turns
}

// starlarkOwn is a built-in function of the language.
func starlarkOwn(name string) *starlark.Builtin { return starlark.Universe[name].(*starlark.Builtin) }

// A prelude has what a script is given beside the host module.
type prelude struct {
	budget *budget
	to     io.Writer // nil drops it
}

// joined are values as print writes them.
func (p *prelude) joined(values starlark.Tuple, sep string) (string, error) {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(sep)
		}
		s, err := p.budget.str(v)
		if err != nil {
			return "", err
		}
		if err := p.budget.alloc(int64(len(s)), "text to print"); err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (p *prelude) print(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	s, err := p.joined(args, sep)
	if err != nil {
		return nil, err
	}
	return starlark.None, p.println(s)
}

func (p *prelude) println(s string) error {
	if p.to == nil {
		return nil
	}
	_, err := fmt.Fprintln(p.to, s)
	return err
}

func (p *prelude) fail(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs("fail", nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	s, err := p.joined(args, sep)
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("fail: %s", s)
}

func (p *prelude) getattr(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlarkOwn("getattr").CallInternal(t, args, kwargs)
	if err != nil {
		return nil, err
	}
	return p.budget.asking(v), nil
}

// didYouMean is the name that was most likely meant as a question, "" where none is near.
func didYouMean(name string, names []string, prefix string) string {
	shown := slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(n string) bool { return strings.HasPrefix(n, hidden) })
	if best := meant.By(name, shown); best != "" {
		return fmt.Sprintf(" (did you mean %s%s?)", prefix, best)
	}
	return ""
}

// jsonModule is `json`: encode and decode. Members keep their order; nesting ends at maxDepth.
func (p *prelude) jsonModule() starlark.Value {
	return &namespace{name: "json", members: starlark.StringDict{
		"encode": starlark.NewBuiltin("json.encode", p.jsonEncode),
		"decode": starlark.NewBuiltin("json.decode", p.jsonDecode),
	}}
}

func (p *prelude) jsonEncode(_ *starlark.Thread, own *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackArgs(own.Name(), args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	v, err := p.budget.plain(x, true, encodedCopies)
	if err != nil {
		return nil, fmt.Errorf("json.encode: %w", err)
	}
	text, err := host.Encode(v)
	if err != nil {
		return nil, err
	}
	return starlark.String(text), nil
}

func (p *prelude) jsonDecode(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if text, ok := first(args).(starlark.String); ok {
		deepest, bytes := shapeOf(string(text))
		if deepest > maxDepth {
			return nil, fmt.Errorf("json.decode: %w", tooDeep())
		}
		if err := p.budget.alloc(bytes, "the values of a JSON text"); err != nil {
			return nil, err
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
