package script

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

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
		{call: (*run).assertEq, Function: host.Function{
			Name: "assert_eq", Params: []host.Param{{Name: "got", Type: "anything"}, {Name: "want", Type: "anything"}, message},
			Doc:     "Ends the script with status 2 where two values are not equal, and shows both, or where they differ.",
			Result:  "None",
			Example: `assert_eq(len("abc"), 3, "a length")`,
		}},
		{call: (*run).assertTrue, Function: host.Function{
			Name: "assert_true", Params: []host.Param{{Name: "value", Type: "anything"}, message},
			Doc:     "Ends the script with status 2 where a value is not true: False, None, 0 or empty.",
			Result:  "None",
			Example: `assert_true(fs.exists("notes.txt"))`,
		}},
		{call: (*run).assertIn, Function: host.Function{
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
	s, err := r.joined(args[0].(starlark.Tuple), " ")
	if err != nil {
		return nil, err
	}
	return starlark.None, r.println(s)
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
	depth := depthOf(t)
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
	e := *r.plainFault(err)
	name := fmt.Sprintf("parallel, branch %d", i)
	if r.budget.stopped() == nil {
		e.Message = name + ": " + e.Message
	}
	e.Stack = append([]Frame{{Name: name}}, e.Stack...)
	return nil, &e
}
