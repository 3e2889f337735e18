package wasi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/host"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	wasip1 "github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
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

// The modules that a program may import from.
const (
	wasiModule = wasip1.ModuleName
	hostModule = "tapedeck"
)

var i32 = api.ValueTypeI32

// addWASI adds WASI preview 1 to the runtime.
func (e *engine) addWASI(ctx context.Context) error {
	builder := e.runtime.NewHostModuleBuilder(wasiModule)
	wasip1.NewFunctionExporter().ExportFunctions(builder)
	builder.NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(pollOneoff), []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}).
		Export("poll_oneoff")
	return e.instantiate(ctx, builder, wasiModule)
}

// addHost adds the functions of package host, each under its name, and one that calls any by its name.
func (e *engine) addHost(ctx context.Context) error {
	builder := e.runtime.NewHostModuleBuilder(hostModule)
	calls := make(map[string]api.GoModuleFunc)
	add := func(name string, do func(*run, []byte) ([]byte, error)) {
		calls[name] = hostCall(name, do)
		builder.NewFunctionBuilder().
			WithGoModuleFunction(calls[name], []api.ValueType{i32, i32}, []api.ValueType{i32}).
			WithParameterNames("arguments", "length").Export(name)
	}
	for _, f := range host.Functions() {
		add(f.Name, func(r *run, arguments []byte) ([]byte, error) { return r.call(f, arguments) })
	}
	add("log", (*run).log)
	builder.NewFunctionBuilder().
		WithGoModuleFunction(callNamed(calls), []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}).
		WithParameterNames("name", "name_length", "arguments", "length").Export("call")
	builder.NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(take), []api.ValueType{i32}, nil).
		WithParameterNames("address").Export("take")
	return e.instantiate(ctx, builder, hostModule)
}

func (e *engine) instantiate(ctx context.Context, builder wazero.HostModuleBuilder, name string) error {
	compiled, err := builder.Compile(ctx)
	if err != nil {
		return err
	}
	e.offers[name] = map[string]bool{}
	for function := range compiled.ExportedFunctions() {
		e.offers[name][function] = true
	}
	_, err = e.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name))
	return err
}

// maxAnswer is what a length in 32 bits with a sign can say.
const maxAnswer = 1<<31 - 1

// hostCall is a function for a module: the address and the length of its arguments in, the length of the answer out.
func hostCall(name string, do func(*run, []byte) ([]byte, error)) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		r := running(ctx)
		if name == "clock.now_ms" || name == "clock.monotonic_ms" {
			r.reading()
		} else {
			r.happened()
			r.tree.changes++ // a command may change files
		}
		arguments, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
		if !ok {
			r.abort(fmt.Errorf("%s: the arguments, %d bytes at %d, lie outside of the module's memory", name, uint32(stack[1]), uint32(stack[0])))
		}
		answer, err := do(r, arguments)
		if err == nil && len(answer) > maxAnswer {
			err = fmt.Errorf("%s: the answer has %d bytes, at most %d can be given", name, len(answer), maxAnswer)
		}
		stack[0] = r.give(answer, err)
	}
}

// give keeps an answer, or the text of an error, until it is taken, and returns what says how long it is.
func (r *run) give(answer []byte, err error) uint64 {
	if r.answer = answer; err == nil {
		return api.EncodeI32(int32(len(answer)))
	}
	r.answer = []byte(strings.ToValidUTF8(err.Error(), "\uFFFD"))
	return api.EncodeI32(-int32(len(r.answer)))
}

// callNamed is hostCall of the function whose name stands at an address.
func callNamed(calls map[string]api.GoModuleFunc) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		name, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
		if !ok {
			running(ctx).abort(fmt.Errorf("call: the name, %d bytes at %d, lies outside of the module's memory", uint32(stack[1]), uint32(stack[0])))
		}
		if do := calls[string(name)]; do != nil {
			do(ctx, m, stack[2:])
			stack[0] = stack[2]
			return
		}
		stack[0] = running(ctx).give(nil, fmt.Errorf("%.100s: no such function of the host", name))
	}
}

// call does f with arguments in JSON, and returns its answer in JSON. When the run's time is over it ends the module.
func (r *run) call(f *host.Function, arguments []byte) ([]byte, error) {
	named, err := decodeNamed(f.Name, arguments)
	if err != nil {
		return nil, err
	}
	args, err := host.Bind(f, nil, named.All)
	if err != nil {
		return nil, err
	}
	answer, err := f.Call(r.ctx, r.b, args)
	if err != nil {
		if r.ctx.Err() != nil {
			r.abort(context.Cause(r.ctx))
		}
		return nil, err
	}
	return host.Encode(answer)
}

// decodeNamed reads arguments by their names.
func decodeNamed(function string, arguments []byte) (host.Object, error) {
	v, err := host.Decode(arguments)
	if err != nil {
		return nil, fmt.Errorf("%s: arguments: %w", function, err)
	}
	o, ok := v.(host.Object)
	if !ok {
		return nil, fmt.Errorf("%s: want the arguments as a JSON object, by their names", function)
	}
	return o, nil
}

// log prints values in a line on standard error, as a script's log does: text as it is, the rest as JSON.
func (r *run) log(arguments []byte) ([]byte, error) {
	o, err := decodeNamed("log", arguments)
	if err != nil {
		return nil, err
	}
	values, ok := o.Get("values").([]any)
	if !ok || len(o) != 1 {
		return nil, errors.New("log: want values, a list, and nothing else")
	}
	var line []byte
	for i, v := range values {
		if i > 0 {
			line = append(line, ' ')
		}
		if text, ok := v.(string); ok {
			line = append(line, text...)
			continue
		}
		text, err := host.Encode(v)
		if err != nil {
			return nil, err
		}
		line = append(line, text...)
	}
	_, err = printer{r, r.o.Stderr}.Write(append(line, '\n'))
	return []byte("null"), err
}

// take copies the answer of the last function to an address of the module, once.
func take(ctx context.Context, m api.Module, stack []uint64) {
	r := running(ctx)
	if !m.Memory().Write(uint32(stack[0]), r.answer) {
		r.abort(fmt.Errorf("take: the answer, %d bytes at %d, does not fit into the module's memory", len(r.answer), uint32(stack[0])))
	}
	r.answer = nil
}

// resolution of both clocks in ns, as a module that asks is told.
const resolution = 1_000_000

// ahead is how much the module's monotonic clock is ahead of the bench's.
const ahead = time.Millisecond

func (r *run) walltime() (sec int64, nsec int32) {
	r.reading()
	t, err := r.b.Clock().ReadWall()
	if err != nil {
		r.abort(err)
	}
	return t.Unix(), int32(t.Nanosecond())
}

func (r *run) nanotime() int64 {
	r.reading()
	d, err := r.b.Clock().ReadMonotonic()
	if err != nil {
		r.abort(err)
	}
	return int64(d + ahead)
}

// reading counts: on a clock that stands still, a loop that waits for the time to come never ends.
func (r *run) reading() {
	if r.reads++; r.reads > r.o.Reads && r.b.Clock().Paused() {
		r.abort(&LimitError{Limit: "reads", What: fmt.Sprintf("the module read the clock %d times while it stood still; "+
			"time passes for who sleeps, or with a real clock (--clock real, Config.Clock.Real)", r.o.Reads)})
	}
}

// happened says that the module did anything else than read the clock.
func (r *run) happened() { r.reads = 0 }

// Layouts of poll_oneoff, in bytes.
const (
	subscriptionSize = 48 // userdata 8, tag 1 at 8, its body at 16: of a clock id 4, timeout 8 at 24, flags 2 at 40
	eventSize        = 32 // userdata 8, errno 2, type 1
)

// What a subscription waits for.
const (
	tagClock = iota
	tagRead
	tagWrite
)

// Errors of WASI, as numbers.
const (
	errnoFault = 21
	errnoInval = 28
)

// pollOneoff stands in for wazero's, which knows no absolute times and says that every time has come when the first has. Files are
// always ready, so a module that waits for one waits for nothing; else the clock moves to the earliest of its times.
func pollOneoff(ctx context.Context, m api.Module, stack []uint64) {
	r, in, out, n, count := running(ctx), uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	subs, fits := read(m, in, uint64(n)*subscriptionSize)
	events, fitsOut := read(m, out, uint64(n)*eventSize)
	if !fits || !fitsOut {
		stack[0] = errnoFault
		return
	}
	waits, ok := r.waits(subs)
	if !ok || n == 0 {
		stack[0] = errnoInval
		return
	}
	due := earliest(waits)
	r.sleep(due)
	stack[0] = 0
	if !m.Memory().WriteUint32Le(count, writeEvents(events, subs, waits, due)) {
		stack[0] = errnoFault
	}
}

// read returns a view of n bytes of the module's memory.
func read(m api.Module, at uint32, n uint64) ([]byte, bool) {
	if n > math.MaxUint32 {
		return nil, false
	}
	return m.Memory().Read(at, uint32(n))
}

// waits returns how long each subscription waits; false where one is not understood.
func (r *run) waits(subs []byte) ([]time.Duration, bool) {
	all := make([]time.Duration, 0, len(subs)/subscriptionSize)
	for ; len(subs) > 0; subs = subs[subscriptionSize:] {
		switch tag := subs[8]; tag {
		case tagClock:
			d, ok := r.waitOf(binary.LittleEndian.Uint32(subs[16:]), binary.LittleEndian.Uint64(subs[24:]), binary.LittleEndian.Uint16(subs[40:]))
			if !ok {
				return nil, false
			}
			all = append(all, d)
		case tagRead, tagWrite:
			all = append(all, 0)
		default:
			return nil, false
		}
	}
	return all, true
}

// waitOf returns how long a clock's subscription waits, in whole milliseconds that hold it.
func (r *run) waitOf(clock uint32, ns uint64, flags uint16) (time.Duration, bool) {
	const absolute = 1
	d := time.Duration(min(ns, math.MaxInt64-uint64(resolution)))
	switch {
	case clock > 1 || flags > absolute:
		return 0, false
	case flags == absolute && clock == 0:
		sec, nsec := r.walltime()
		d -= time.Duration(sec)*time.Second + time.Duration(nsec)
	case flags == absolute:
		d -= time.Duration(r.nanotime())
	}
	return (max(d, 0) + resolution - 1) / resolution * resolution, true
}

func earliest(waits []time.Duration) time.Duration {
	due := time.Duration(math.MaxInt64)
	for _, d := range waits {
		due = min(due, d)
	}
	return due
}

func (r *run) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	r.happened()
	if err := r.b.Clock().Sleep(r.ctx, d); err != nil {
		r.abort(err)
	}
}

// writeEvents writes an event for each subscription that is due, and returns how many.
func writeEvents(events, subs []byte, waits []time.Duration, due time.Duration) (n uint32) {
	for i, d := range waits {
		if d > due {
			continue
		}
		sub, event := subs[i*subscriptionSize:], events[n*eventSize:][:eventSize]
		user, tag := [8]byte(sub), sub[8] // events may lie where subscriptions do
		clear(event)
		copy(event, user[:])
		event[10] = tag
		n++
	}
	return n
}
