package script

import (
	"fmt"
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
			c := converter{budget: r.budget}
			if values[i], err = c.value(v); err != nil {
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
	n, rest := len(f.Params), starlark.Tuple(nil)
	takesRest := n > 0 && strings.HasPrefix(f.Params[n-1].Name, "*")
	if takesRest {
		n = min(n-1, len(args))
		args, rest = args[:n], args[n:]
	}
	out, err := host.Bind(f, args, func(yield func(string, starlark.Value) bool) {
		for _, kw := range kwargs {
			if !yield(string(kw[0].(starlark.String)), kw[1]) {
				return
			}
		}
	})
	if takesRest && err == nil {
		out[len(out)-1] = rest
	}
	return out, err
}
