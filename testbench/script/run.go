package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.starlark.net/starlark"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

// run is one script on one bench. But for what budget says itself, it belongs to the branch that runs.
type run struct {
	bench       *testbench.Bench
	opts        *Options
	budget      *budget
	predeclared starlark.StringDict

	file    string   // the script as it was given, with slashes
	root    *os.Root // its directory
	dir     string   // the path of that
	modules map[string]*module
	sources map[string][]byte // by the name that positions have
	held    int               // assertions that did
}

func newRun(b *testbench.Bench, o *Options) *run {
	r := &run{
		bench: b, opts: o, budget: newBudget(o), predeclared: starlark.StringDict{},
		modules: map[string]*module{}, sources: map[string][]byte{},
	}
	r.checkedOperators(r.predeclared)
	r.universe(r.predeclared)
	r.hostModule(r.predeclared)
	return r
}

type outcome struct {
	result *Result
	err    error
}

// start runs the script in a goroutine of its own, so that a step without an end can be left behind.
func (r *run) start(ctx context.Context, path string) (*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer r.budget.watch(ctx, r.opts.Timeout, cancel)()
	done := make(chan outcome, 1)
	go func() { done <- r.guarded(ctx, path) }()
	select {
	case out := <-done:
		return out.result, out.err
	case <-r.budget.stopping:
	}
	select {
	case out := <-done:
		return out.result, out.err
	case <-time.After(r.opts.Grace):
		err := r.budget.stopped()
		return nil, &Error{Position: Position{File: filepath.ToSlash(path)},
			Message: err.Error() + " (it was left behind in the middle of a step)", LeftBehind: true, cause: err}
	}
}

// guarded turns a panic, which would be a mistake of ours or of a piece, into an error of this script alone.
func (r *run) guarded(ctx context.Context, path string) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = outcome{nil, &Error{Position: Position{File: filepath.ToSlash(path)}, Message: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}}
		}
	}()
	result, err := r.whole(ctx, path)
	return outcome{result, err}
}

// whole is the script from its first statement to the last of on_finish.
func (r *run) whole(ctx context.Context, file string) (*Result, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, &Error{Message: err.Error(), cause: err}
	}
	defer root.Close()
	r.root, r.file = root, filepath.ToSlash(file)
	r.dir = path.Dir(r.file)
	v, err := r.entry(ctx, filepath.Base(file))
	if r.budget.stopped() == nil { // else nothing runs any more
		if finished := r.bench.Finish(ctx); err == nil {
			err = finished
		} else if finished != nil {
			err = errors.Join(err, finished)
		}
	}
	if stop := r.budget.stopped(); err == nil && stop != nil { // between two functions: what was to run still has not
		err = &Error{Position: Position{File: r.file}, Message: stop.Error(), cause: stop}
	}
	if err != nil {
		return nil, err
	}
	return r.result(v)
}

// entry runs the file, then the function that was asked for.
func (r *run) entry(ctx context.Context, name string) (starlark.Value, error) {
	globals, err := r.module(ctx, nil, name)
	if err != nil {
		return nil, err
	}
	entry := r.opts.Entry
	fn, ok := globals[entry].(starlark.Callable)
	if !ok {
		return nil, r.noEntry(name, entry, globals)
	}
	var args starlark.Tuple
	if f, ok := fn.(*starlark.Function); !ok || f.NumParams() > 0 {
		args = starlark.Tuple{stringList(r.opts.Args)}
	}
	return r.call(ctx, "main", 0, fn, args)
}

func (r *run) noEntry(name, entry string, globals starlark.StringDict) error {
	names := globals.Keys()
	e := &Error{Position: Position{File: path.Join(r.dir, name)}, Message: fmt.Sprintf("no function %s%s", entry, didYouMean(entry, names, ""))}
	if entry == "main" {
		e.Hint = "a script defines main(args), a file of tests functions test_…, which take nothing"
	}
	return e
}

// call calls fn on a thread of its own. depth is how many calls stand above it.
func (r *run) call(ctx context.Context, name string, depth int, fn starlark.Callable, args starlark.Tuple) (starlark.Value, error) {
	t := r.thread(ctx, name, depth)
	defer r.budget.enter(t, depth)()
	v, err := starlark.Call(t, fn, args, nil)
	if err != nil {
		return nil, r.fault(err)
	}
	return v, nil
}

// What a thread carries.
const (
	localContext = "context"
	localDepth   = "depth"
)

func (r *run) thread(ctx context.Context, name string, depth int) *starlark.Thread {
	t := &starlark.Thread{Name: name, Load: r.load}
	t.SetLocal(localContext, ctx)
	t.SetLocal(localDepth, depth)
	return t
}

func contextOf(t *starlark.Thread) context.Context { return t.Local(localContext).(context.Context) }

// depthOf is how many calls stand on t and above it.
func depthOf(t *starlark.Thread) int { return t.Local(localDepth).(int) + t.CallStackDepth() }

func (r *run) result(v starlark.Value) (*Result, error) {
	out := &Result{Steps: r.budget.steps, Assertions: r.held}
	c := converter{budget: r.budget, encode: true}
	plain, err := c.value(v)
	if err == nil {
		out.JSON, err = host.Encode(plain)
	}
	if err != nil {
		return nil, &Error{Position: Position{File: r.file}, Message: fmt.Sprintf("what %s returned cannot be printed: %v", r.opts.Entry, err), cause: err}
	}
	switch v := v.(type) {
	case starlark.NoneType:
	case starlark.String:
		out.Text = string(v)
	default:
		out.Text = string(out.JSON)
	}
	return out, nil
}

func stringList(texts []string) *starlark.List {
	out := make([]starlark.Value, len(texts))
	for i, s := range texts {
		out[i] = starlark.String(s)
	}
	return starlark.NewList(out)
}
