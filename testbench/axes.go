package testbench

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// openProcesses says what answers commands.
func (b *Bench) openProcesses() error {
	next, err := b.commands()
	if err != nil {
		return err
	}
	if path := b.conf.Processes.Record; path != "" {
		keeper := process.NewCalls(next)
		next = keeper
		b.writes = append(b.writes, func() error { return b.writeCalls(path, keeper.Calls()) })
	}
	b.spawner = process.NewSpawner(&process.SpawnerOptions{Runner: &watchedRunner{b: b, next: next}, Wait: b.wait, Apply: b.applyChanges})
	b.spawner.Record(b.Recorder())
	return nil
}

// commands returns what answers commands; nil where they are denied.
func (b *Bench) commands() (process.Runner, error) {
	c := &b.conf.Processes
	switch {
	case b.from != nil:
		return process.NewTaped(b.from.all(), b.from.store, &process.TapedOptions{
			InOrder: b.from.foreign, NoStdin: b.from.bare, Clean: b.secrets.clean,
		})
	case c.Runner != nil:
		return c.Runner, nil
	case c.Tape != "":
		calls, err := readFile(c.Tape, process.ReadCalls)
		if err != nil {
			return nil, &ConfigError{"Processes.Tape", err}
		}
		return b.player(calls), nil
	case c.Calls != nil:
		return b.player(c.Calls), nil
	case c.Live || c.Record != "":
		return b.host(), nil
	}
	return nil, nil
}

// player answers from a process tape.
func (b *Bench) player(calls []process.Call) process.Runner {
	p := process.NewPlayer(calls, &process.PlayerOptions{Clean: b.secrets.form})
	b.unused = append(b.unused, func() (out []string) {
		first, left := p.Unused()
		for i := range left {
			out = append(out, fmt.Sprintf("call %d of the process tape: %s", first+i, &process.Command{Program: left[i].Program, Args: left[i].Args}))
		}
		return out
	})
	return p
}

// host runs commands on this machine, on the run's files.
func (b *Bench) host() process.Runner {
	o := &process.HostOptions{Env: b.conf.Env, Fill: b.files.Copy, Changes: b.changedFiles, Outside: b.clock.Outside}
	if !b.clock.Paused() {
		o.Now = b.elapsed
	}
	h := process.NewHost(o)
	b.closers = append(b.closers, h.Close)
	return h
}

// elapsed is the time since the run began, unrecorded.
func (b *Bench) elapsed() time.Duration {
	_, ms := b.clock.Stamp()
	return time.Duration(ms) * time.Millisecond
}

// writeCalls writes a process tape, without secrets.
func (b *Bench) writeCalls(path string, calls []process.Call) error {
	var out bytes.Buffer
	for i := range calls {
		env := maps.Clone(calls[i].Env)
		for _, name := range sortedKeys(env) {
			env[name] = string(b.secrets.variable(name, env[name]))
		}
		calls[i].Env = env
		calls[i] = calls[i].Clean(b.secrets.clean)
	}
	if err := process.WriteCalls(&out, calls); err != nil {
		return &ConfigError{"Processes.Record", err}
	}
	if err := replace(path, out.Bytes()); err != nil {
		return &ConfigError{"Processes.Record", err}
	}
	return nil
}

// watchedRunner tells the watch of commands that nothing answers.
type watchedRunner struct {
	b    *Bench
	next process.Runner // nil denies
}

// Run implements process.Runner.
func (w *watchedRunner) Run(ctx context.Context, c *process.Command) (*process.Result, error) {
	if err := w.b.watch.gate(); err != nil {
		return nil, err
	}
	var res *process.Result
	var err error = &process.DeniedError{Command: *c.Clone()}
	if w.next != nil {
		res, err = w.next.Run(ctx, c)
	}
	return res, w.b.watch.see(err, func() tape.Kind { return w.b.spawnOf(c) })
}

// spawnOf is what the tape would say of a command, without what came of it.
func (b *Bench) spawnOf(c *process.Command) tape.Kind {
	k, _ := process.SpawnOf(c)
	for _, s := range tape.Strings(k) {
		*s = b.cleanText(*s)
	}
	if len(c.Stdin) > 0 {
		k.Stdin = b.payload(c.Stdin)
	}
	return k
}

// payload is the payload that the tape would have for bytes of a call that nothing answers.
func (b *Bench) payload(p []byte) *tape.Payload {
	out, err := b.Recorder().Payload(p)
	if err != nil {
		return nil // the recorder failed, which Close says
	}
	return out
}

func (b *Bench) cleanText(s string) string { return string(b.secrets.clean([]byte(s))) }
