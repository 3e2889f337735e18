package wasi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	wasip1 "github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

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
