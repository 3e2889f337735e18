package host

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
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
