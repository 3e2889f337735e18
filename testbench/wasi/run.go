package wasi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// A Result is how a program ended that came to its end, or said that it had.
type Result struct {
	ExitCode uint32
}

// Run runs the module in the file at path as a program on b. Its own name, argv[0], is that of the file without its directory.
//
// Errors name the file: *ExitError for a status other than 0 (beside a Result), *TrapError, *LimitError, *ModuleError, *ImportError; ctx's; what an
// axis of the bench failed with, where the program cannot be told of it (its clock, its random numbers).
func Run(ctx context.Context, b *testbench.Bench, path string, o *Options) (*Result, error) {
	code, err := readModule(path)
	if err != nil {
		return nil, err
	}
	return RunModule(ctx, b, filepath.Base(path), code, o)
}

// maxModule is how large a module's file may be.
const maxModule = 256 << 20

func readModule(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Room for all of it at once, where it is a file that says how long it is.
	code := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxModule)+bytes.MinRead))
	n, err := code.ReadFrom(io.LimitReader(f, maxModule+1))
	if err == nil && n > maxModule {
		err = &ModuleError{Reason: fmt.Sprintf("want a module of at most %d MiB", maxModule>>20)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return code.Bytes(), nil
}

// RunModule is Run for the bytes of a module, whose name is the program's.
func RunModule(ctx context.Context, b *testbench.Bench, name string, code []byte, o *Options) (*Result, error) {
	all := o.withDefaults()
	res, err := runModule(ctx, b, name, code, &all)
	if err != nil {
		return res, fmt.Errorf("%s: %w", name, err)
	}
	return res, nil
}

func runModule(ctx context.Context, b *testbench.Bench, name string, code []byte, o *Options) (*Result, error) {
	e, err := o.Cache.engine(o.pages())
	if err != nil {
		return nil, err
	}
	m, err := e.compile(code)
	if err != nil {
		return nil, err
	}
	defer e.release(m)
	late := &LimitError{Limit: "timeout", What: fmt.Sprintf("the module still ran after %v; --timeout, Options.Timeout allow it more", o.Timeout)}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, late)
	defer cancel()
	r := &run{b: b, o: o}
	r.ctx = context.WithValue(ctx, runKey{}, r)
	instance, err := e.runtime.InstantiateModule(r.ctx, m.compiled, r.config(name))
	if instance != nil {
		if m.memory {
			r.grown = instance.Memory().Size()
		}
		_ = instance.Close(context.WithoutCancel(ctx)) // its files: what they fail with stands in r
	}
	return r.ended(err)
}

// run is one module that runs. It belongs to the goroutine that runs it.
type run struct {
	b   *testbench.Bench
	o   *Options
	ctx context.Context

	reads  int    // of the clock, since anything else happened
	answer []byte // of the last function of the host, until it is taken
	fatal  error  // what ended the module, where it was the bench or a limit
	failed error  // the first file that could not be kept

	once    sync.Once // standard input
	stdin   []byte
	printed int64
	grown   uint32 // the bytes of its memory at the end
	open    int    // files
	tree    *tree
}

type runKey struct{}

// running returns the run whose module calls. Every call of a function of the host carries it.
func running(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }

// abort ends the module with err, from within one of the functions that it calls.
func (r *run) abort(err error) {
	if r.fatal == nil {
		r.fatal = err
	}
	panic(r.fatal)
}

// ended says how the module ended, from what its instantiation returned.
func (r *run) ended(err error) (*Result, error) {
	var exit *sys.ExitError
	switch {
	case r.fatal != nil:
		return nil, r.fatal
	case r.ctx.Err() != nil:
		return nil, context.Cause(r.ctx)
	case err == nil:
		return &Result{}, r.failed
	case !errors.As(err, &exit):
		return nil, trap(err)
	case exit.ExitCode() == 0:
		return &Result{}, r.failed
	}
	failed := &ExitError{Code: exit.ExitCode()}
	if limit := int64(r.o.pages()) * pageSize; int64(r.grown) > limit/4*3 {
		failed.Memory = fmt.Sprintf("its memory had grown to %d of the %d bytes that it may have: --memory, Options.Memory allow it more", r.grown, limit)
	}
	return &Result{ExitCode: failed.Code}, errors.Join(failed, r.failed)
}

// trap takes apart what wazero says of one.
func trap(err error) error {
	text, stack, ok := strings.Cut(err.Error(), "\nwasm stack trace:\n")
	if !ok {
		return &ModuleError{Reason: "the module does not start: " + err.Error()}
	}
	if _, reason, ok := strings.Cut(text, "wasm error: "); ok {
		text = reason
	}
	t := &TrapError{Reason: text}
	stack, _, _ = strings.Cut(stack, "\n\n") // below stands Go's own, of a function of the engine
	for line := range strings.Lines(stack) {
		if line = strings.TrimSpace(line); line != "" {
			t.Stack = append(t.Stack, line)
		}
	}
	return t
}

func (r *run) config(name string) wazero.ModuleConfig {
	args := r.o.Args
	if args == nil {
		args = r.b.Args()
	}
	r.tree = &tree{r: r, f: r.b.Files()}
	config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{name}, args...)...).
		WithStdin(stdin{r}).WithStdout(printer{r, r.o.Stdout}).WithStderr(printer{r, r.o.Stderr}).
		WithWalltime(r.walltime, resolution).WithNanotime(r.nanotime, resolution).WithRandSource(random{r}).
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(r.tree, "/"))
	for _, variable := range r.b.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		config = config.WithEnv(name, value)
	}
	return config
}
