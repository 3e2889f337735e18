package process

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/arrival"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// SpawnerOptions say how a Spawner answers. Nil and zero work.
type SpawnerOptions struct {
	// Runner runs or answers the commands; nil denies every one.
	Runner Runner
	// Wait lets the time of an answer pass, before the answer is recorded. Nil: an answer takes no time.
	Wait func(ctx context.Context, d time.Duration) error
	// Apply makes what a command changed true of the files that the program under test sees, and records it as that spawn's
	// (spawn_id, from 1). It is called after the command itself has been recorded, where there are changes. Nil drops them.
	Apply func(spawn uint64, changes []Change) error
}

// A Spawner is how a program under test runs commands: by a Runner, each of them recorded. It may be used by several goroutines at once.
//
// One process_spawn is recorded for each command that has a Result, after its time has passed, in the order of their ends. Where that
// is not the order in which they were asked for, spawn_id says which of those a command was, from 1.
type Spawner struct {
	next     Runner
	wait     func(ctx context.Context, d time.Duration) error
	apply    func(spawn uint64, changes []Change) error
	rec      *tape.Recorder
	arrivals arrival.Counter
}

// NewSpawner returns a Spawner.
func NewSpawner(o *SpawnerOptions) *Spawner {
	s := &Spawner{}
	if o != nil {
		s.next, s.wait, s.apply = o.Runner, o.Wait, o.Apply
	}
	return s
}

// Record has what s does recorded. It is called before the first command; a nil recorder records nothing and costs nothing.
func (s *Spawner) Record(rec *tape.Recorder) { s.rec = rec }

// Run implements Runner. The error is a *DeniedError, what the runner says, the context's, or that of the tape.
func (s *Spawner) Run(ctx context.Context, c *Command) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("process: %s: %w", c, ended(ctx))
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if s.next == nil {
		return nil, &DeniedError{Command: *c.Clone()}
	}
	spawn := s.arrivals.Ask()
	got, err := s.next.Run(ctx, c)
	if got == nil {
		return nil, err
	}
	res := new(Result)
	*res = *got                                            // which may be everybody's
	res.Duration = res.Duration.Truncate(time.Millisecond) // as a tape has it: a replay takes the same time
	if !res.Passed && res.Duration > 0 && s.wait != nil {
		if errWait := s.wait(ctx, res.Duration); err == nil && errWait != nil { // the answer is used up all the same
			err = fmt.Errorf("process: %s: %w", c, errWait)
		}
	}
	if errRecord := s.recorded(c, res, spawn); errRecord != nil {
		return nil, errRecord
	}
	if len(res.Changes) > 0 && s.apply != nil {
		if errApply := s.apply(spawn, res.Changes); errApply != nil {
			return nil, fmt.Errorf("process: %s: the files that it changed: %w", c, errApply)
		}
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// recorded is the hook: so small that it stands where it is called.
func (s *Spawner) recorded(c *Command, res *Result, spawn uint64) error {
	if s.rec == nil {
		return nil
	}
	return s.record(c, res, spawn)
}

// record writes what was asked and what came of it.
func (s *Spawner) record(c *Command, res *Result, spawn uint64) error {
	var k tape.ProcessSpawn
	raw := asSpawn(&k, c)
	if k.SpawnID = s.arrivals.Write(spawn); len(res.Changes) > 0 { // whose records name it
		k.SpawnID = spawn
	}
	k.ExitCode, k.DurationMS, k.Signal = res.ExitCode, res.Duration.Milliseconds(), res.Signal
	if res.Failure != "" {
		k.Extra = []tape.Field{{Name: failureKey, Value: jsonscan.AppendText(nil, res.Failure)}}
	}
	var err error
	if k.Stdout, err = s.rec.Payload(res.Stdout); err != nil {
		return err
	}
	if k.Stderr, err = s.rec.Payload(res.Stderr); err != nil {
		return err
	}
	if len(c.Stdin) > 0 {
		if k.Stdin, err = s.rec.Payload(c.Stdin); err != nil {
			return err
		}
	}
	return s.rec.RecordRaw(&k, raw)
}

// failureKey is the further key of a process_spawn that holds Result.Failure.
const failureKey = "failure"

// SpawnOf is the record of c without what came of it and without its stdin, and the true bytes of what is not UTF-8.
func SpawnOf(c *Command) (*tape.ProcessSpawn, []tape.RawBytes) {
	k := new(tape.ProcessSpawn)
	raw := asSpawn(k, c)
	k.Args = slices.Clone(k.Args)
	return k, raw
}

// asSpawn makes k what SpawnOf returns, with the arguments of c themselves where all of them are UTF-8.
func asSpawn(k *tape.ProcessSpawn, c *Command) (raw []tape.RawBytes) {
	safe := func(key, v string) string {
		text, b := tape.SafeString(v)
		if b != nil {
			raw = append(raw, tape.RawBytes{Key: key, Bytes: b})
		}
		return text
	}
	k.Program, k.Args = safe("program", c.Program), c.Args
	if slices.ContainsFunc(c.Args, func(a string) bool { return !utf8.ValidString(a) }) {
		k.Args = make([]string, len(c.Args))
		for i, a := range c.Args {
			k.Args[i] = safe(fmt.Sprintf("args.%d", i), a)
		}
	}
	if c.Cwd != nil {
		cwd := safe("cwd", *c.Cwd)
		k.Cwd = &cwd
	}
	return raw
}

// A DeniedError is a command that nothing was there to answer.
type DeniedError struct{ Command Command }

// Error implements error.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("process: denied: %s: a testbench runs no command by itself; give it a process tape (--processes TAPE, "+
		"Config.Processes.Tape), make one (--processes record=OUT, Config.Processes.Record) or let commands run (--processes live, "+
		"Config.Processes.Live)", &e.Command)
}

// maxDurationMS is the longest time of a command, in ms, that a time.Duration holds.
const maxDurationMS = math.MaxInt64 / int64(time.Millisecond)
