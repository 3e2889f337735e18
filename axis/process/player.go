package process

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// PlayerOptions say how a Player compares. Nil and zero work.
type PlayerOptions struct {
	// Clean brings a string of a command into the form in which it is compared: without its secrets, which one who records a process
	// tape keeps off it. Nil compares all as it is.
	Clean func(b []byte) []byte
}

// A Player answers commands from the calls of a process tape, in their order.
//
// A call answers a command with the same program and arguments, in the same directory or, where the call has none, in any. A command
// that the next call does not answer uses it not up.
type Player struct {
	calls  []Call
	clean  func([]byte) []byte
	mu     sync.Mutex                    // held by who looks at the next call
	script *lane.Player[struct{}, *Call] // all have one key
}

// NewPlayer returns a Player of calls, which must not change while it is used.
func NewPlayer(calls []Call, o *PlayerOptions) *Player {
	lines := make([]lane.Line[*Call], len(calls))
	for i := range calls {
		lines[i].Value = &calls[i]
	}
	p := &Player{calls: calls, script: lane.NewPlayer(lines, &lane.PlayerOptions[struct{}, *Call]{Key: func(*Call) struct{} { return struct{}{} }})}
	if o != nil {
		p.clean = o.Clean
	}
	return p
}

// Run implements Runner. The error is a *MismatchError, an *ExhaustedError, or, beside the result, that the command was cancelled when
// it was recorded.
func (p *Player) Run(_ context.Context, c *Command) (*Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, ok := p.script.Find(struct{}{}, 0, nil)
	if !ok {
		return nil, &ExhaustedError{Number: len(p.calls) + 1, Asked: *c.Clone(), Calls: len(p.calls)}
	}
	call := &p.calls[next]
	fields := call.differs(c, nil)
	if fields != nil && p.clean != nil {
		fields = call.differs(c, p.clean)
	}
	if fields != nil {
		return nil, &MismatchError{Number: next + 1, Asked: *c.Clone(), Has: *call, Fields: fields}
	}
	p.script.Came(next)
	res := call.result()
	return res, res.asEnded(c)
}

// Unused lists the calls that no command has used up, and the number of the first of them, from 1.
func (p *Player) Unused() (first int, calls []Call) {
	next, ok := p.script.Find(struct{}{}, 0, nil)
	if !ok {
		next = len(p.calls)
	}
	return next + 1, slices.Clone(p.calls[next:])
}

// A MismatchError is a command that is not the next one of the process tape.
type MismatchError struct {
	Number int // of the call on the process tape, from 1
	Asked  Command
	Has    Call
	Fields []string // those that differ: "program", "args", "cwd"
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("process: call %d: asked for %s; the process tape has %s (%s); change the one or the other, or "+
		"record the process tape anew (--processes record=OUT, Config.Processes.Record)",
		e.Number, &e.Asked, e.Has.command(), differ(e.Fields))
}

// differ says of fields that they differ.
func differ(fields []string) string {
	if len(fields) == 1 && fields[0] != "args" {
		return fields[0] + " differs"
	}
	return strings.Join(fields, " and ") + " differ"
}

// An ExhaustedError is a command that comes after the last call of the process tape.
type ExhaustedError struct {
	Number int // of the call that would have answered, from 1
	Asked  Command
	Calls  int // how many the process tape has
}

// Error implements error.
func (e *ExhaustedError) Error() string {
	has := "no call"
	switch {
	case e.Calls == 1:
		has = "one call, which is used up"
	case e.Calls > 1:
		has = fmt.Sprintf("%d calls, which are used up", e.Calls)
	}
	return fmt.Sprintf("process: call %d: asked for %s; the process tape has %s; add this one, or record the process tape anew "+
		"(--processes record=OUT, Config.Processes.Record)", e.Number, &e.Asked, has)
}

// A Keeper passes commands to another Runner and keeps what came of them, for a process tape.
type Keeper struct {
	next Runner

	mu    sync.Mutex // guards calls
	calls []*Call    // in the order in which they were asked for; nil for one that has no result
}

// NewCalls returns a Keeper in front of next.
func NewCalls(next Runner) *Keeper { return &Keeper{next: next} }

// Run implements Runner.
func (k *Keeper) Run(ctx context.Context, c *Command) (*Result, error) {
	k.mu.Lock()
	place := len(k.calls)
	k.calls = append(k.calls, nil)
	k.mu.Unlock()
	res, err := k.next.Run(ctx, c)
	if res != nil {
		call := callOf(c, res)
		k.mu.Lock()
		k.calls[place] = &call
		k.mu.Unlock()
	}
	return res, err
}

// Calls lists what was kept so far, in the order in which it was asked for: that in which a Player answers.
func (k *Keeper) Calls() []Call {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := []Call{}
	for _, c := range k.calls {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}
