package testbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Bench is one run with every input virtual. Its pieces are what Go programs take already; each records what it gives.
//
// The pieces may be used by several goroutines at once. On a clock that stands still the tape is the same in every run as long as
// the branches of the program come from Parallel: what plain goroutines do stands in the order in which they did it.
type Bench struct {
	conf    Config
	clock   *clock.Clock
	files   *overlay.FS
	model   *fixture.Caller
	spawner *process.Spawner
	http    http.RoundTripper
	tools   *tools
	random  *Random
	env     map[string]string
	out     *output   // nil where there is no tape
	from    *recorded // what a replay answers from; nil for others
	secrets *secrets
	watch   watch
	// What Close does, in this order, each list in its own: what may still record, what the Config asks to be written, what is let
	// go. A run that does not begin is let go only.
	late, writes, closers []func() error
	unused                []func() []string

	closing  sync.Once
	closeErr error
	failed   atomic.Bool // Fail

	mu       sync.Mutex // guards what follows
	hooks    []func(ctx context.Context) error
	finished bool
	hooking  bool // a hook runs
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
func (b *Bench) Recorder() *tape.Recorder {
	if b.out == nil {
		return nil
	}
	return b.out.rec
}

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
	if b.finished {
		b.mu.Unlock()
		return nil
	}
	b.finished, b.hooking = true, true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.hooking = false
		b.mu.Unlock()
	}()
	b.Recorder().SetPhase(tape.PhaseRuntimeFinalize)
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

// isBare reports whether records have the keys alone that every producer of the format writes, where ours would have more: what these
// say cannot be compared then, nor be needed for an answer.
func isBare(records []*tape.Record) bool {
	said := false // anything that ours says more of
	for _, rec := range records {
		switch k := rec.Kind.(type) {
		case *tape.LLMCall:
			if k.RequestPayload != nil {
				return false
			}
		case *tape.FileRead:
			if k.Content != nil {
				return false
			}
		case *tape.FileWrite:
			if k.Content != nil {
				return false
			}
		case *tape.FileDelete:
			if k.Before != nil {
				return false
			}
		default:
			continue
		}
		said = true
	}
	return said
}

// leaveOutLooks takes out of the replay that a path was looked at, where the tape never says so. at is a place among the records; it
// returns where that is then.
func (v *verdict) leaveOutLooks(at int) int {
	look := func(rec *tape.Record) bool {
		_, ok := rec.Kind.(*tape.FileStat)
		return ok
	}
	if slices.ContainsFunc(v.recorded, look) {
		return at
	}
	at = min(at, len(v.replayed))
	before := slices.DeleteFunc(slices.Clone(v.replayed[:at]), look)
	after := slices.DeleteFunc(slices.Clone(v.replayed[at:]), look)
	v.replayed = slices.Concat(before, after)
	return len(before)
}

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
	if err != nil || b.out == nil {
		return content, err
	}
	p, err := b.out.rec.Payload(content)
	if err != nil {
		return nil, err
	}
	return content, b.out.rec.Record(&tape.FileRead{File: tape.File{Path: path, ContentHash: p.Hash, LenBytes: p.Len, Content: p}})
}

// inputTaped is the next reading of path that the tape has.
func (b *Bench) inputTaped(path string) ([]byte, error) {
	b.from.mu.Lock()
	queue, known := b.from.inputs[path]
	if len(queue) > 0 {
		b.from.inputs[path] = queue[1:]
	}
	b.from.mu.Unlock()
	if len(queue) == 0 {
		asked := path + " was not read when this tape was made"
		if known {
			asked = path + " was not read once more when this tape was made"
		}
		err := &RefusedError{Axis: "files", Asked: asked, Next: "record the run again, or undo what reads it"}
		b.watch.refuse(err, func() tape.Kind { return &tape.FileRead{File: tape.File{Path: path}} })
		return nil, err
	}
	if queue[0].Content == nil {
		return nil, fmt.Errorf("testbench: the tape %s does not hold what was read of %s", b.from.path, path)
	}
	content, err := queue[0].Content.Bytes(b.from.store)
	return content, b.watch.see(err, nil)
}
