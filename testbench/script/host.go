package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

// hostModule are the names of docs/reference/script.md: those of package host, and those that are the engine's own.
func (r *run) hostModule(into starlark.StringDict) {
	for _, f := range host.Functions() {
		put(into, f.Name, r.hostFunction(f))
	}
	for i := range ownFunctions {
		f := &ownFunctions[i]
		put(into, f.Name, r.ownFunction(f))
	}
}

// put places a function at a name that may have a dot.
func put(into starlark.StringDict, name string, f *starlark.Builtin) {
	space, member, dotted := strings.Cut(name, ".")
	if !dotted {
		into[name] = f
		return
	}
	n, ok := into[space].(*namespace)
	if !ok {
		n = &namespace{name: space, members: starlark.StringDict{}}
		into[space] = n
	}
	n.members[member] = f
}

// namespace is what stands before the dot of a host function.
type namespace struct {
	name    string
	members starlark.StringDict
}

func (n *namespace) String() string        { return "<module " + n.name + ">" }
func (n *namespace) Type() string          { return "module" }
func (n *namespace) Freeze()               {}
func (n *namespace) Truth() starlark.Bool  { return true }
func (n *namespace) AttrNames() []string   { return n.members.Keys() }
func (n *namespace) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: module") }

// Attr is a function of the namespace.
func (n *namespace) Attr(name string) (starlark.Value, error) {
	if f, ok := n.members[name]; ok {
		return f, nil
	}
	return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no function %s; it has %s", n.name, name, strings.Join(n.AttrNames(), ", ")))
}

func (r *run) hostFunction(f *host.Function) *starlark.Builtin {
	return starlark.NewBuiltin(f.Name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := r.budget.call(); err != nil {
			return nil, err
		}
		given, err := bind(f, args, kwargs)
		if err != nil {
			return nil, err
		}
		values := make([]any, len(given))
		for i, v := range given {
			if v == nil {
				continue
			}
			if values[i], err = r.toHost(v); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f.Name, f.Params[i].Name, err)
			}
		}
		out, err := f.Call(contextOf(t), r.bench, values)
		if err != nil {
			return nil, named(f.Name, err)
		}
		return fromHost(out)
	})
}

// named puts the function before an error that does not say it.
func named(name string, err error) error {
	if strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// bind puts arguments into the order of the parameters, nil where none was given. The last parameter takes the rest where its
// name begins with an asterisk.
func bind(f *host.Function, args starlark.Tuple, kwargs []starlark.Tuple) ([]starlark.Value, error) {
	out := make([]starlark.Value, len(f.Params))
	rest := len(f.Params) > 0 && strings.HasPrefix(f.Params[len(f.Params)-1].Name, "*")
	if rest {
		n := len(f.Params) - 1
		out[n] = args[min(n, len(args)):]
		args = args[:min(n, len(args))]
	}
	if len(args) > len(f.Params) {
		return nil, fmt.Errorf("%s: at most %d arguments are wanted, got %d: %s", f.Name, len(f.Params), len(args), signature(f))
	}
	copy(out, args)
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		i := slices.IndexFunc(f.Params, func(p host.Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%s: no parameter %s%s: %s", f.Name, name, didYouMean(name, paramNames(f), ""), signature(f))
		case out[i] != nil:
			return nil, fmt.Errorf("%s: %s is given twice: %s", f.Name, name, signature(f))
		}
		out[i] = kw[1]
	}
	for i, p := range f.Params {
		if out[i] == nil && !p.Optional {
			return nil, fmt.Errorf("%s: %s is missing: %s", f.Name, p.Name, signature(f))
		}
	}
	return out, nil
}

func paramNames(f *host.Function) []string {
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}
	return names
}

// signature is a function with its parameters, as people write it.
func signature(f *host.Function) string {
	names := paramNames(f)
	for i, p := range f.Params {
		if p.Optional && !strings.HasPrefix(p.Name, "*") {
			names[i] += "=None"
		}
	}
	return f.Name + "(" + strings.Join(names, ", ") + ")"
}
