// Package host is what a program on a testbench may ask the bench for, whatever runs it: one table of functions with their names,
// parameters, words for people, and what each does. A Starlark script calls them as they stand there, a WebAssembly module with
// its arguments as JSON; an engine holds nothing of their logic.
//
// Values are those of JSON: nil, bool, int64, float64, string, []any and Object, whose members keep their order. Two more: json.Number
// is an integer beyond an int64, and []byte is a string of bytes that is not text, in JSON {"base64":"…"}.
package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"github.com/tapedeck-dev/tapedeck/testbench"
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

// All gives the members in their order. It is used as a range.
func (o Object) All(yield func(name string, value any) bool) {
	for i := range o {
		if !yield(o[i].Name, o[i].Value) {
			return
		}
	}
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
	var s jsonscan.Scanner
	s.Reset(text)
	v := decodeValue(&s, 0)
	if err := s.End(); err != nil {
		return nil, fmt.Errorf("json, %w", err)
	}
	return v, nil
}

func decodeValue(s *jsonscan.Scanner, depth int) any {
	if depth > maxDepth {
		s.Fail("nested over %d deep", maxDepth)
		return nil
	}
	switch s.Peek() {
	case 'n':
		s.Null()
		return nil
	case 't', 'f':
		return s.Bool()
	case '"':
		return strings.ToValidUTF8(s.Text(), "\uFFFD")
	case '[':
		list := []any{}
		for s.Begin('['); s.More(']'); {
			list = append(list, decodeValue(s, depth+1))
		}
		return list
	case '{':
		o, seen := Object{}, map[string]bool{}
		for s.Begin('{'); s.More('}'); {
			name := strings.ToValidUTF8(string(s.Key()), "\uFFFD")
			if seen[name] {
				s.Fail("want a name that has not been before, got %q", name)
			}
			seen[name] = true
			o = append(o, Member{name, decodeValue(s, depth+1)})
		}
		return rawBytes(o)
	}
	return number(json.Number(s.Number()))
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

// args reads the arguments of one call by their types. One that is wrong ends the call: Function.Call returns it as its error.
type args struct {
	f      *Function
	values []any
}

// badArgument is what a call panics with.
type badArgument struct{ err error }

func (a *args) wrong(i int, want string) {
	panic(badArgument{fmt.Errorf("%s: %s: want %s, got %s", a.f.Name, a.f.Params[i].Name, want, describe(a.values[i]))})
}

func (a *args) text(i int) string {
	s, ok := a.values[i].(string)
	if !ok {
		a.wrong(i, "a string")
	}
	return s
}

// textOr is text, or "" where nothing was given.
func (a *args) textOr(i int) string {
	if a.values[i] == nil {
		return ""
	}
	return a.text(i)
}

func (a *args) bytes(i int) []byte {
	switch v := a.values[i].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	a.wrong(i, "a string or bytes")
	return nil
}

func (a *args) bytesOr(i int) []byte {
	if a.values[i] == nil {
		return nil
	}
	return a.bytes(i)
}

func (a *args) integer(i int) int64 {
	switch v := a.values[i].(type) {
	case int64:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	a.wrong(i, "an integer of 64 bits")
	return 0
}

func (a *args) list(i int) []any {
	if a.values[i] == nil {
		return nil
	}
	list, ok := a.values[i].([]any)
	if !ok {
		a.wrong(i, "a list")
	}
	return list
}

func (a *args) texts(i int) []string {
	var out []string
	for _, v := range a.list(i) {
		s, ok := v.(string)
		if !ok {
			a.wrong(i, "a list of strings")
		}
		out = append(out, s)
	}
	return out
}

func (a *args) object(i int) Object {
	if a.values[i] == nil {
		return nil
	}
	o, ok := a.values[i].(Object)
	if !ok {
		a.wrong(i, "a dict with names that are strings")
	}
	return o
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return fmt.Sprintf("the bool %t", v)
	case int64, json.Number:
		return fmt.Sprintf("the int %v", v)
	case float64:
		return fmt.Sprintf("the float %v", v)
	case string:
		return fmt.Sprintf("the string %.40q", v)
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case Object:
		return fmt.Sprintf("a dict of %d", len(v))
	}
	return fmt.Sprintf("a %T", v)
}

// A Function is one that a program may call.
type Function struct {
	Name    string // "llm.complete"
	Params  []Param
	Doc     string // what it does, in a sentence or two
	Result  string // what comes back
	Example string // a line of Starlark

	do func(ctx context.Context, b *testbench.Bench, a *args) (any, error)
}

// Call does it on b. values has one for each of Params, in their order, nil where none was given. The error is the axis's, or says
// which argument is wrong.
func (f *Function) Call(ctx context.Context, b *testbench.Bench, values []any) (out any, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case badArgument:
			err = p.err
		default:
			panic(p)
		}
	}()
	if len(values) != len(f.Params) {
		return nil, fmt.Errorf("%s: want %d arguments, got %d", f.Name, len(f.Params), len(values))
	}
	return f.do(ctx, b, &args{f: f, values: values})
}

// A Param is one parameter of a Function.
type Param struct {
	Name     string
	Type     string // for people: "string", "int", "list of dicts"
	Optional bool   // may be left out; then it is nil
}

// Functions returns all of them, in the order of the documentation. The list is the caller's, what it points at is not.
func Functions() []*Function { return append([]*Function(nil), table...) }

// Bind puts arguments, by their places and by their names, into the order of the parameters of f. The last parameter, where its name begins
// with an asterisk, is none of them. Errors: too many, a name that the function does not have or that is given twice, a parameter that must
// be given and is not. All that are not given are the zero V.
func Bind[V any](f *Function, args []V, named iter.Seq2[string, V]) ([]V, error) {
	out, given := make([]V, len(f.Params)), make([]bool, len(f.Params))
	if len(args) > len(f.Params) {
		return nil, fmt.Errorf("%s: at most %d arguments are wanted, got %d: %s", f.Name, len(f.Params), len(args), f)
	}
	for i := range args {
		out[i], given[i] = args[i], true
	}
	for name, v := range named {
		i := slices.IndexFunc(f.Params, func(p Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%s: no parameter %s%s: %s", f.Name, name, didYouMean(name, f.names()), f)
		case given[i]:
			return nil, fmt.Errorf("%s: %s is given twice: %s", f.Name, name, f)
		}
		out[i], given[i] = v, true
	}
	for i, p := range f.Params {
		if !p.Optional && !given[i] {
			return nil, fmt.Errorf("%s: %s is missing: %s", f.Name, p.Name, f)
		}
	}
	return out, nil
}

func didYouMean(name string, names []string) string {
	if best := meant.By(name, names); best != "" {
		return fmt.Sprintf(" (did you mean %s?)", best)
	}
	return ""
}

func (f *Function) names() []string {
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}
	return names
}

// String returns the function with its parameters as people write them: "llm.complete(messages, system=None)".
func (f *Function) String() string {
	names := f.names()
	for i, p := range f.Params {
		if p.Optional && !strings.HasPrefix(p.Name, "*") {
			names[i] += "=None"
		}
	}
	return f.Name + "(" + strings.Join(names, ", ") + ")"
}

// table is what a program may call, in the order of the documentation.
var table = slices.Concat(clockFunctions, modelFunctions, fileFunctions, processFunctions, mcpFunctions, httpFunctions, randomFunctions, envFunctions)
