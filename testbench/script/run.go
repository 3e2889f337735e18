package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
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
	sources sources
	asserts asserts
	prelude prelude
}

func newRun(b *testbench.Bench, o *Options) *run {
	budget := newBudget(o)
	r := &run{
		bench: b, opts: o, budget: budget, predeclared: starlark.StringDict{}, modules: map[string]*module{}, sources: sources{},
		asserts: asserts{budget: budget}, prelude: prelude{budget, o.Print},
	}
	budget.checkedOperators(r.predeclared)
	r.prelude.universe(r.predeclared)
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
	case <-time.After(min(r.opts.Timeout, maxGrace)):
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
		return nil, r.sources.fault(err, r.budget.stopped())
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

func (r *run) result(v starlark.Value) (*Result, error) {
	out := &Result{Steps: r.budget.steps, Assertions: r.asserts.held}
	plain, err := r.budget.plain(v, false, encodedCopies)
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

// Limits of a run where Options says nothing.
const (
	DefaultSteps   = 200_000_000     // of the interpreter: some seconds
	DefaultMemory  = 512 << 20       // bytes
	DefaultTimeout = 5 * time.Minute // of this machine's time, whatever the script's clock says

	maxGrace = 2 * time.Second // a step goes on when that is over for as long again, but no longer than this, before it is left behind
)

// Options are how a script runs. Nil and the zero value work.
type Options struct {
	Steps   uint64        // of the interpreter, 0 is DefaultSteps
	Memory  int64         // bytes by which the heap of this process may grow meanwhile, 0 is DefaultMemory
	Timeout time.Duration // of real time, 0 is DefaultTimeout
	Print   io.Writer     // gets what log and print say, a line each; nil drops it
	Args    []string      // what the entry is called with; nil is the bench's
	Entry   string        // the function to call, "" is main
}

// of returns the options with what they leave out, for a run on b.
func (o *Options) of(b *testbench.Bench) *Options {
	var all Options
	if o != nil {
		all = *o
	}
	all.Steps = cmp.Or(all.Steps, DefaultSteps)
	all.Memory = cmp.Or(max(all.Memory, 0), DefaultMemory)
	all.Timeout = cmp.Or(max(all.Timeout, 0), DefaultTimeout)
	all.Entry = cmp.Or(all.Entry, "main")
	if all.Args == nil {
		all.Args = b.Args()
	}
	return &all
}

// Result is what a script gave back.
type Result struct {
	JSON       []byte // what the entry returned; null where it returned None
	Text       string // the same for people: a string as it is, anything else as JSON; "" for None
	Steps      uint64 // of the interpreter
	Assertions int    // that held
}

// Fprint writes what the command prints: Text and a line's end, nothing where the script returned None.
func (r *Result) Fprint(w io.Writer) error {
	if string(r.JSON) == "null" {
		return nil
	}
	_, err := fmt.Fprintln(w, r.Text)
	return err
}

// Run runs the script at path on b: its own statements, then its entry, then what it gave to on_finish. The bench stays open.
//
// An error is an *Error with the place; behind it an *AssertionError, a *LimitError, or what a piece of the bench refused with. The
// script has ended when Run returns, but for one that is in a step without an end when its time is over.
func Run(ctx context.Context, b *testbench.Bench, path string, o *Options) (*Result, error) {
	return newRun(b, o.of(b)).start(ctx, path)
}

// Tests lists the functions of a script that are tests, in the order of the file: those at the top whose names begin with "test_"
// and that take nothing. The script is read, not run. A test that would never run is an error: one with parameters, or of a name
// that stands twice.
func Tests(path string) ([]string, error) {
	src, err := readSource(path)
	if err != nil {
		return nil, err
	}
	name := filepath.ToSlash(path)
	f, err := parseForNames(name, src)
	var names []string
	if err == nil {
		names, err = testNames(f)
	}
	if err != nil {
		return nil, sources{name: src}.compileError(err)
	}
	return names, nil
}

func readSource(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads one byte more than a script may have; checkSource refuses it then.
func readBounded(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxSource+1)) }

// module is a file that has run, or does.
type module struct {
	globals starlark.StringDict
	err     error
}

// load is the statement of that name: a path below the script's directory, relative to the file that loads.
func (r *run) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	from := r.within(t.CallFrame(0).Pos.Filename())
	to := path.Join(path.Dir(from), name)
	if name == "" || strings.ContainsAny(name, "\\\x00") || path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(to)) {
		return nil, fmt.Errorf("a file below the script's directory is wanted, with slashes, got %q", name)
	}
	return r.module(contextOf(t), append(loading(t), from), to)
}

// within is the path of a file below the script's directory, of the name that its positions have.
func (r *run) within(filename string) string {
	rel, err := filepath.Rel(filepath.FromSlash(r.dir), filepath.FromSlash(filename))
	if err != nil {
		return filename
	}
	return filepath.ToSlash(rel)
}

const localLoading = "loading"

// loading are the files above the one that t runs, the script first.
func loading(t *starlark.Thread) []string {
	chain, _ := t.Local(localLoading).([]string)
	return slices.Clip(chain)
}

// module runs a file once. chain are the files that are loading it.
func (r *run) module(ctx context.Context, chain []string, name string) (starlark.StringDict, error) {
	if i := slices.Index(chain, name); i >= 0 {
		return nil, fmt.Errorf("a circle of files that load each other: %s", strings.Join(append(chain[i:], name), " → "))
	}
	m := r.modules[name]
	if m == nil {
		m = &module{}
		r.modules[name] = m
		m.globals, m.err = r.exec(ctx, chain, name)
	}
	return m.globals, m.err
}

func (r *run) exec(ctx context.Context, chain []string, name string) (starlark.StringDict, error) {
	shown := path.Join(r.dir, name)
	src, err := r.read(name)
	if err != nil {
		return nil, &Error{Message: err.Error(), cause: err}
	}
	r.sources[shown] = src
	program, err := r.compile(shown, src)
	if err != nil {
		return nil, r.sources.undefined(err, r.predeclared.Keys())
	}
	depth := len(chain)
	t := r.thread(ctx, name, depth)
	t.SetLocal(localLoading, chain)
	defer r.budget.enter(t, depth)()
	globals, err := program.Init(t, r.predeclared)
	if err != nil {
		return nil, r.sources.fault(err, r.budget.stopped())
	}
	return globals, nil
}

func (r *run) compile(name string, src []byte) (*starlark.Program, error) {
	f, err := parse(name, src)
	if err != nil {
		return nil, err
	}
	return starlark.FileProgram(f, r.predeclared.Has)
}

// read opens a regular file below the script's directory; links that lead out are refused by the root.
func (r *run) read(name string) ([]byte, error) {
	info, err := r.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, opening(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: a script is one", name)
	}
	f, err := r.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, opening(name, err)
	}
	defer f.Close()
	return readBounded(f)
}

// opening is an error of the root without the name of its system call.
func opening(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: "open", Path: name, Err: at.Err}
	}
	return err
}

// testNames are the tests of a file. The error is a syntax.Error.
func testNames(f *syntax.File) (names []string, err error) {
	for _, s := range f.Stmts {
		def, ok := s.(*syntax.DefStmt)
		if !ok || !strings.HasPrefix(def.Name.Name, "test_") {
			continue
		}
		name := def.Name.Name
		switch {
		case len(def.Params) > 0:
			return nil, syntax.Error{Pos: def.Name.NamePos, Msg: name + " takes parameters, and a test takes none: give what it needs beside the file, or name it otherwise"}
		case slices.Contains(names, name):
			return nil, syntax.Error{Pos: def.Name.NamePos, Msg: name + " stands twice, and the first one would never run: name one otherwise"}
		}
		names = append(names, name)
	}
	return names, nil
}
