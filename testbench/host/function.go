package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

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
func (f *Function) Call(ctx context.Context, b *testbench.Bench, values []any) (any, error) {
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

// Bind takes arguments by name and returns them by the order of the parameters. Errors: a name that the function does not have, a
// parameter that must be given and is not.
func (f *Function) Bind(named Object) ([]any, error) {
	args := make([]any, len(f.Params))
	given := make([]bool, len(f.Params))
	for _, m := range named {
		i := f.index(m.Name)
		if i < 0 {
			return nil, fmt.Errorf("%s: no parameter %q: it has %s", f.Name, m.Name, f.signature())
		}
		args[i], given[i] = m.Value, true
	}
	for i, p := range f.Params {
		if !p.Optional && !given[i] {
			return nil, fmt.Errorf("%s: %s is missing: it has %s", f.Name, p.Name, f.signature())
		}
	}
	return args, nil
}

func (f *Function) index(name string) int {
	for i, p := range f.Params {
		if p.Name == name {
			return i
		}
	}
	return -1
}

// signature returns the parameters as people write them: "(messages, system=None)".
func (f *Function) signature() string {
	var names []string
	for _, p := range f.Params {
		if p.Optional {
			p.Name += "=None"
		}
		names = append(names, p.Name)
	}
	return "(" + strings.Join(names, ", ") + ")"
}
