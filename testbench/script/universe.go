package script

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

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

func init() {
	// Values of JSON nest deeper than the ten levels that Starlark compares by default.
	starlark.CompareLimit = max(starlark.CompareLimit, 100)
}

// asserts are the assertions of a script.
type asserts struct {
	budget *budget
	held   int // that did
}

func (a *asserts) eq(args []starlark.Value) (starlark.Value, error) {
	equal, err := starlark.EqualDepth(args[0], args[1], maxDepth)
	if err != nil {
		return nil, err
	}
	if equal {
		return a.holds()
	}
	return a.failed(args[2], args[0], "is not", args[1], true)
}

func (a *asserts) isTrue(args []starlark.Value) (starlark.Value, error) {
	if args[0].Truth() {
		return a.holds()
	}
	return a.failed(args[1], args[0], "is not true", nil, false)
}

func (a *asserts) in(args []starlark.Value) (starlark.Value, error) {
	in, err := starlark.Binary(syntax.IN, args[0], args[1])
	if err != nil {
		return nil, fmt.Errorf("assert_in: %w", err)
	}
	if in == starlark.True {
		return a.holds()
	}
	return a.failed(args[2], args[0], "is not in", args[1], false)
}

func (a *asserts) holds() (starlark.Value, error) {
	a.held++
	return starlark.None, nil
}

// shownValue is how much of a value an assertion shows.
const shownValue = 2000

func (a *asserts) failed(message, got starlark.Value, verb string, want starlark.Value, diff bool) (starlark.Value, error) {
	e := &AssertionError{Verb: verb}
	var err error
	if message != nil && message != starlark.None {
		if e.Message, err = a.budget.str(message); err != nil {
			return nil, err
		}
	}
	if e.Got, err = a.budget.repr(got); err != nil {
		return nil, err
	}
	if want != nil {
		if e.Want, err = a.budget.repr(want); err != nil {
			return nil, err
		}
	}
	if diff && len(e.Got)+len(e.Want) > 120 {
		d := differ{budget: a.budget}
		d.values(got, want, "")
		e.Diff = d.String()
	}
	e.Got, e.Want = short(e.Got, shownValue), short(e.Want, shownValue)
	return nil, e
}

// differ lists the places at which two values differ.
type differ struct {
	strings.Builder
	budget *budget
	lines  int
	depth  int
}

const (
	shownPlaces = 12  // of a diff
	shownPart   = 160 // of a value in it
)

func (d *differ) values(got, want starlark.Value, path string) {
	if d.lines > shownPlaces || d.depth > maxDepth {
		return
	}
	if equal, err := starlark.EqualDepth(got, want, maxDepth); err != nil || equal {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	if got.Type() != want.Type() {
		d.place(path, d.text(got), d.text(want))
		return
	}
	switch g := got.(type) {
	case *starlark.Dict, *starlarkstruct.Struct:
		d.fields(got, want, path)
	case *starlark.List:
		d.lists(g, want.(starlark.Indexable), path)
	case starlark.Tuple:
		d.lists(g, want.(starlark.Indexable), path)
	case starlark.String:
		d.texts(string(g), string(want.(starlark.String)), path)
	default:
		d.place(path, d.text(got), d.text(want))
	}
}

// fields compares dicts, or structs.
func (d *differ) fields(got, want starlark.Value, path string) {
	at := func(key starlark.Value) string {
		if _, dict := got.(*starlark.Dict); dict {
			return path + "[" + d.text(key) + "]"
		}
		return path + "." + string(key.(starlark.String))
	}
	for k, g := range fields(got) {
		if w := field(want, k); w != nil {
			d.values(g, w, at(k))
		} else {
			d.place(at(k), d.text(g), "nothing")
		}
	}
	for k, w := range fields(want) {
		if field(got, k) == nil {
			d.place(at(k), "nothing", d.text(w))
		}
	}
}

func (d *differ) lists(got, want starlark.Indexable, path string) {
	if got.Len() != want.Len() {
		d.place(path, fmt.Sprintf("%d elements", got.Len()), fmt.Sprintf("%d elements", want.Len()))
	}
	for i := range min(got.Len(), want.Len()) {
		d.values(got.Index(i), want.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	if n := got.Len(); n > want.Len() {
		d.place(fmt.Sprintf("%s[%d]", path, want.Len()), d.text(got.Index(want.Len())), "nothing")
	} else if n < want.Len() {
		d.place(fmt.Sprintf("%s[%d]", path, n), "nothing", d.text(want.Index(n)))
	}
}

// texts shows the first line that differs of long texts.
func (d *differ) texts(got, want, path string) {
	if len(got)+len(want) <= 2*shownPart && !strings.Contains(got+want, "\n") {
		d.place(path, syntax.Quote(got, false), syntax.Quote(want, false))
		return
	}
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}
	start := strings.LastIndexByte(got[:same], '\n') + 1
	line := func(s string) string {
		s, _, _ = strings.Cut(s[start:], "\n")
		return s
	}
	from := common(line(got), line(want))
	cut := func(s string) string {
		l := line(s)
		l = l[min(from, len(l)):]
		l = l[:min(len(l), 2*shownPart)] // what is shown no more need not be quoted
		return fmt.Sprintf("%s of %d lines", short(syntax.Quote(l, false), shownPart), strings.Count(s, "\n")+1)
	}
	d.place(fmt.Sprintf("%s line %d, byte %d", path, strings.Count(got[:same], "\n")+1, from+1), cut(got), cut(want))
}

// common is where two lines begin to differ, less a few characters for people.
func common(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	if i < 40 {
		return 0
	}
	for i -= 20; i > 0 && a[i]&0xc0 == 0x80; i-- {
	}
	return i
}

func (d *differ) place(path, got, want string) {
	if d.lines++; d.lines > shownPlaces {
		if d.lines == shownPlaces+1 {
			d.WriteString("  and more\n")
		}
		return
	}
	if path == "" {
		path = "the value"
	}
	fmt.Fprintf(d, "  %s: got %s, want %s\n", strings.TrimSpace(path), got, want)
}

func (d *differ) text(v starlark.Value) string {
	s, err := d.budget.repr(v)
	if err != nil {
		return v.Type()
	}
	return short(s, shownPart)
}
