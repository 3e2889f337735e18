package testbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Bench is one run with every input virtual. Its pieces are what Go programs take already; each records what it gives.
//
// The pieces may be used by several goroutines at once. On a clock that stands still the tape is the same in every run as long as
// the branches of the program come from Parallel: what plain goroutines do stands in the order in which they did it.
type Bench struct {
	*core

	files   *overlay.FS
	model   *fixture.Caller
	spawner *process.Spawner
	http    http.RoundTripper
	tools   *tools
	random  *Random
	env     *environment

	closing  sync.Once
	closeErr error

	mu      sync.Mutex // guards what follows
	hooks   []func(ctx context.Context) error
	hooking bool // a hook runs
}

// begin makes the pieces of the run.
func (b *Bench) begin() (err error) {
	b.openClock()
	if err = b.openTape(); err != nil {
		return err
	}
	if b.files, err = (&tree{core: b.core}).open(); err != nil {
		return err
	}
	if b.model, err = (&models{core: b.core}).open(); err != nil {
		return err
	}
	if b.spawner, err = (&commands{core: b.core, files: b.files}).open(); err != nil {
		return err
	}
	if b.http, err = (&network{core: b.core, model: b.model}).open(); err != nil {
		return err
	}
	if b.tools, err = openMCP(b.core); err != nil {
		return err
	}
	b.random, b.env = newRandom(b.core), &environment{core: b.core, set: maps.Clone(b.conf.Env)}
	if b.out == nil {
		return nil
	}
	return b.out.begin() // last: a run that cannot begin leaves the tape of the one before
}

// Clock returns the run's clock.
func (b *Bench) Clock() *clock.Clock { return b.clock }

// Files returns the run's files.
func (b *Bench) Files() *overlay.FS { return b.files }

// Model returns the run's model.
func (b *Bench) Model() *fixture.Caller { return b.model }

// Processes returns what runs the run's commands.
func (b *Bench) Processes() *process.Spawner { return b.spawner }

// HTTP returns the run's network.
func (b *Bench) HTTP() http.RoundTripper { return b.http }

// Client returns an HTTP client on the run's network.
func (b *Bench) Client() *http.Client { return &http.Client{Transport: b.http} }

// Random returns the run's source of random numbers.
func (b *Bench) Random() *Random { return b.random }

// Recorder returns what writes the run's tape; nil where there is none. A further piece of a program records through it.
func (b *Bench) Recorder() *tape.Recorder { return b.rec }

// Args returns the run's arguments: Config.Args, of a replay those of the tape.
func (b *Bench) Args() []string { return b.conf.Args }

// Parallel runs the branches as clock.Clock.Parallel does: by turns on a clock that stands still, so that their records always
// stand in the same order.
func (b *Bench) Parallel(ctx context.Context, branches ...func(ctx context.Context) error) error {
	return b.clock.Parallel(ctx, branches...)
}

// OnFinish has f called by Finish, in the order in which they were added.
func (b *Bench) OnFinish(f func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks = append(b.hooks, f)
}

// Finish says that the program's own body has ended: what is recorded from now on stands in phase runtime_finalize. It calls what
// OnFinish was given, also what these add, and returns their errors. Close calls it where nobody did.
func (b *Bench) Finish(ctx context.Context) error {
	b.mu.Lock()
	ended := b.finished.Swap(true)
	b.hooking = b.hooking || !ended
	b.mu.Unlock()
	if ended {
		return nil
	}
	defer func() {
		b.mu.Lock()
		b.hooking = false
		b.mu.Unlock()
	}()
	b.rec.SetPhase(tape.PhaseRuntimeFinalize)
	var errs []error
	for f := b.nextHook(); f != nil; f = b.nextHook() {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

func (b *Bench) nextHook() func(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hooks) == 0 {
		return nil
	}
	f := b.hooks[0]
	b.hooks = b.hooks[1:]
	return f
}

// Fail says that the program did not come to its end, or to a wrong one: Close leaves Config.Files.Dir as it is then. New says so of a
// test that failed.
func (b *Bench) Fail() { b.failed.Store(true) }

// Failed reports whether Fail was called.
func (b *Bench) Failed() bool { return b.failed.Load() }

// ErrFinishing is returned by Close while what OnFinish was given runs: the end of the run waits for that, and would wait for itself.
var ErrFinishing = errors.New("testbench: Close was called while what OnFinish was given runs, after which the run ends: leave it to who ends the run")

// Close ends the run: Finish, then what the Config asks to be written (a diff, the files themselves, a process tape, rules, the
// tape). A second Close returns what the first one did; one within what OnFinish was given is ErrFinishing, and does nothing.
func (b *Bench) Close() error {
	b.mu.Lock()
	hooking := b.hooking
	b.mu.Unlock()
	if hooking {
		return ErrFinishing
	}
	b.closing.Do(func() {
		errs := []error{b.Finish(context.Background())}
		for _, list := range [][]func() error{b.late, b.writes, b.closers} {
			for _, f := range list {
				errs = append(errs, f())
			}
		}
		b.closeErr = errors.Join(errs...)
	})
	return b.closeErr
}

// Unused lists, for people, the rules and recorded calls that nobody asked for.
func (b *Bench) Unused() []string {
	var all []string
	for _, list := range b.unused {
		all = append(all, list()...)
	}
	return all
}

// Refused returns what the first call failed with that nothing could answer: an axis that is denied, a call that no rule and no
// recorded one fits. Nil where all were answered.
func (b *Bench) Refused() error { return b.watch.first() }

// Input is a further input of the program that comes whole, its standard input above all: what read gives, on the tape as a file_read of
// that path. On a replay it is what the tape has there, each reading of a path the next one, and read is not called.
func (b *Bench) Input(path string, read func() ([]byte, error)) ([]byte, error) {
	if err := b.watch.gate(); err != nil {
		return nil, err
	}
	if b.from != nil {
		read = func() ([]byte, error) { return b.inputTaped(path) }
	}
	content, err := read()
	if err != nil || b.rec == nil {
		return content, err
	}
	p, err := b.rec.Payload(content)
	if err != nil {
		return nil, err
	}
	return content, b.rec.Record(&tape.FileRead{File: tape.File{Path: path, ContentHash: p.Hash, LenBytes: p.Len, Content: p}})
}

// Getenv returns a variable of Config.Env, and whether it is set; on a replay, what the tape says that it was. Each reading is on
// the tape as an env_read.
func (b *Bench) Getenv(name string) (string, bool) {
	value, ok, err := b.env.lookup(name)
	if err != nil {
		return "", false // not one that the tape does not have
	}
	return value, ok
}

// LookupEnv is Getenv with the reason why there is no answer: a replay whose tape does not hold a reading of the variable.
func (b *Bench) LookupEnv(name string) (value string, ok bool, err error) { return b.env.lookup(name) }

// Environ returns all of Config.Env as NAME=VALUE, sorted by name; on a replay, the variables that the tape says were set. Each
// of them is on the tape as an env_read.
func (b *Bench) Environ() []string {
	var all []string
	for _, name := range b.env.names() {
		if value, ok := b.Getenv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// CallTool calls a tool of an MCP server and returns the result as JSON: its content, and isError where the tool failed. arguments is
// what encoding/json makes an object of; nil is none.
//
// The call is answered by a recorded one to the same server and tool with the same arguments, of equal ones by the next in recorded
// order, each once. Facts that differ from run to run (package scrub has the list) may differ; a call in which they do not comes first.
// The recorded latency passes on the run's clock. The error is a *ToolError, or a *RefusedError where nothing answers.
func (b *Bench) CallTool(ctx context.Context, server, tool string, arguments any) (json.RawMessage, error) {
	params, err := toolParams(tool, arguments)
	if err != nil {
		return nil, fmt.Errorf("mcp: %s: %s: the arguments: %w", server, tool, err)
	}
	a, err := b.tools.ask(ctx, server, methodCall, params)
	if err != nil {
		return nil, err
	}
	if a.Error == nil {
		return a.Result, nil
	}
	return nil, toolError(server, tool, a.Error)
}

// AskMCP asks an MCP server of the run for anything, as CallTool does for a call of a tool: answered by a recorded request of that method
// with equal params, and recorded. What comes is a message with a Result or an Error, and without an id.
//
// With what a client begins (initialize, server/discover, logging/setLevel) is answered to any client, and so is a ping: from the tape
// where it has an answer, else by one that is made up and stands on no tape. The error is a *RefusedError where nothing answers.
func (b *Bench) AskMCP(ctx context.Context, server, method string, params json.RawMessage) (*mcp.Message, error) {
	if m := b.tools.madeUp(server, method, params); m != nil {
		return m, nil
	}
	return b.tools.ask(ctx, server, method, params)
}
