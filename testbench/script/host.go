package script

import (
	"context"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

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
			if values[i], err = r.budget.plain(v, false, 1); err != nil {
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

// ownFunction is one that needs Starlark's values: functions that are called back, values that are compared.
type ownFunction struct {
	host.Function
	call func(r *run, t *starlark.Thread, args []starlark.Value) (starlark.Value, error)
}

// ownFunctions are the host module's, beside those of package host, in the order of the documentation.
var ownFunctions []ownFunction

func init() { // parallel and on_finish call functions that call these
	ownFunctions = []ownFunction{
		{call: (*run).parallel, Function: host.Function{
			Name: "parallel", Params: []host.Param{{Name: "functions", Type: "list of functions"}},
			Doc: "Calls functions that take nothing side by side, and waits for all. Of branches that can go on, the one of the earliest time " +
				"goes, then the first of the list: what they ask for stands on the tape in the same order in every run. Where one fails, the others " +
				"are ended at what they wait for, and the error of the first of the list that failed by itself is the whole's.",
			Result:  "what the functions returned, in the order of the list",
			Example: `both = parallel([lambda: clock.sleep(20), lambda: llm.complete([{"role": "user", "content": "What failed?"}])])`,
		}},
		{call: (*run).log, Function: host.Function{
			Name: "log", Params: []host.Param{{Name: "*values", Type: "anything", Optional: true}},
			Doc:     "Prints values for people, on standard error. Nothing of it is on the tape. print does the same.",
			Result:  "None",
			Example: `log("read", 3, "files")`,
		}},
		{call: asserting((*asserts).eq), Function: host.Function{
			Name: "assert_eq", Params: []host.Param{{Name: "got", Type: "anything"}, {Name: "want", Type: "anything"}, message},
			Doc:     "Ends the script with status 2 where two values are not equal, and shows both, or where they differ.",
			Result:  "None",
			Example: `assert_eq(len("abc"), 3, "a length")`,
		}},
		{call: asserting((*asserts).isTrue), Function: host.Function{
			Name: "assert_true", Params: []host.Param{{Name: "value", Type: "anything"}, message},
			Doc:     "Ends the script with status 2 where a value is not true: False, None, 0 or empty.",
			Result:  "None",
			Example: `assert_true(fs.exists("notes.txt"))`,
		}},
		{call: asserting((*asserts).in), Function: host.Function{
			Name: "assert_in", Params: []host.Param{{Name: "item", Type: "anything"}, {Name: "container", Type: "string, list, dict or set"}, message},
			Doc:     "Ends the script with status 2 where a container does not have an item, or a string not a part.",
			Result:  "None",
			Example: `assert_in("b", "abc")`,
		}},
		{call: (*run).onFinish, Function: host.Function{
			Name: "on_finish", Params: []host.Param{{Name: "fn", Type: "function"}},
			Doc:     "Has a function that takes nothing called after main, in the order in which they were given, also where main failed. What it asks for stands on the tape in phase runtime_finalize.",
			Result:  "None",
			Example: `on_finish(lambda: fs.write("done.txt", "yes"))`,
		}},
	}
}

var message = host.Param{Name: "message", Type: "string", Optional: true}

func asserting(f func(a *asserts, args []starlark.Value) (starlark.Value, error)) func(*run, *starlark.Thread, []starlark.Value) (starlark.Value, error) {
	return func(r *run, _ *starlark.Thread, args []starlark.Value) (starlark.Value, error) {
		return f(&r.asserts, args)
	}
}

func (r *run) ownFunction(f *ownFunction) *starlark.Builtin {
	return starlark.NewBuiltin(f.Name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		values, err := bind(&f.Function, args, kwargs)
		if err != nil {
			return nil, err
		}
		return f.call(r, t, values)
	})
}

func (r *run) log(_ *starlark.Thread, args []starlark.Value) (starlark.Value, error) {
	s, err := r.prelude.joined(args[0].(starlark.Tuple), " ")
	if err != nil {
		return nil, err
	}
	return starlark.None, r.prelude.println(s)
}

// callback wants a function that can be called with nothing.
func callback(name, param string, v starlark.Value) (starlark.Callable, error) {
	fn, ok := v.(starlark.Callable)
	if !ok {
		return nil, fmt.Errorf("%s: %s: a function is wanted, got %s", name, param, describe(v))
	}
	if f, ok := fn.(*starlark.Function); ok && required(f) > 0 {
		return nil, fmt.Errorf("%s: %s: a function that takes nothing is wanted, %s takes %d: lambda: %s(…) is one", name, param, f.Name(), required(f), f.Name())
	}
	return fn, nil
}

func required(f *starlark.Function) (n int) {
	params := f.NumParams()
	if f.HasVarargs() {
		params--
	}
	if f.HasKwargs() {
		params--
	}
	for i := range params {
		if f.ParamDefault(i) == nil {
			n++
		}
	}
	return n
}

func describe(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.NoneType:
		return "None"
	case starlark.String:
		return "the string " + short(syntax.Quote(string(v), false), 60)
	case starlark.Int, starlark.Float, starlark.Bool:
		return "the " + v.Type() + " " + short(v.String(), 60)
	}
	return kindOf(v)
}

func (r *run) onFinish(_ *starlark.Thread, args []starlark.Value) (starlark.Value, error) {
	fn, err := callback("on_finish", "fn", args[0])
	if err != nil {
		return nil, err
	}
	r.bench.OnFinish(func(ctx context.Context) error {
		if r.budget.stopped() != nil {
			return nil
		}
		_, err := r.call(ctx, "on_finish", 0, fn, nil)
		return err
	})
	return starlark.None, nil
}

// branchBytes is what a branch takes: its goroutine, its thread.
const branchBytes = 16 << 10

func (r *run) parallel(t *starlark.Thread, args []starlark.Value) (starlark.Value, error) {
	list, ok := args[0].(starlark.Sequence)
	if !ok {
		return nil, fmt.Errorf("parallel: functions: a list of functions is wanted, got %s", describe(args[0]))
	}
	depth := t.Local(localDepth).(int) + t.CallStackDepth()
	if depth > maxCalls {
		err := tooManyCalls()
		r.budget.stop(err)
		return nil, err
	}
	if err := r.budget.alloc(int64(list.Len())*branchBytes, "branches"); err != nil {
		return nil, err
	}
	results := make([]starlark.Value, list.Len())
	branches := make([]func(context.Context) error, 0, list.Len())
	for v := range starlark.Elements(list) {
		i := len(branches)
		fn, err := callback("parallel", fmt.Sprintf("functions[%d]", i), v)
		if err != nil {
			return nil, err
		}
		branches = append(branches, func(ctx context.Context) (err error) {
			results[i], err = r.branch(ctx, i, depth, fn)
			return err
		})
	}
	if err := r.bench.Parallel(contextOf(t), branches...); err != nil {
		return nil, err
	}
	return starlark.NewList(results), nil
}

// branch is one function of parallel; its error says which.
func (r *run) branch(ctx context.Context, i, depth int, fn starlark.Callable) (starlark.Value, error) {
	v, err := r.call(ctx, "parallel", depth, fn, nil)
	if err == nil {
		return v, nil
	}
	e := *plainFault(err)
	name := fmt.Sprintf("parallel, branch %d", i)
	if r.budget.stopped() == nil {
		e.Message = name + ": " + e.Message
	}
	e.Stack = append([]Frame{{Name: name}}, e.Stack...)
	return nil, &e
}
