package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// How long a failed action waits before it is tried again: doubled with each attempt.
const (
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 10 * time.Second
)

// execute runs an action that is allowed, as often as its failures ask for, and then makes its effects part of the state. The
// run's lock is held, and given away while a tool runs and before it is called again.
func (r *run) execute(ctx context.Context, o *Outcome) {
	a := o.Action
	for attempt := 1; ; attempt++ {
		output, err := r.attempt(ctx, o, attempt)
		full := err == nil && r.Room != nil && !r.Room(len(output))
		switch {
		case full:
			err = fmt.Errorf("it ran, and its output of %d bytes was dropped: no room is left for what this proposal gives", len(output))
		case err == nil:
			err = r.effects(o)
		}
		if err == nil {
			r.state.keep()
			o.Result.end(Succeeded, output, "")
			return
		}
		r.state.back()
		clear(o.Result.StateChanges)
		if full || attempt == a.Attempts() || !r.wait(attempt) {
			o.Result.end(Failed, nil, err.Error())
			return
		}
		r.cost.Retries++
	}
}

// attempt runs an action once. What is written from then on, until the lock is given away, is what this attempt writes.
func (r *run) attempt(ctx context.Context, o *Outcome, attempt int) (output json.RawMessage, err error) {
	if o.Action.Type == ToolCall {
		output, err = r.call(ctx, o, attempt)
	}
	r.state.mark()
	switch o.Action.Type {
	case StateWrite:
		return r.stateWrite(o)
	case StateRead:
		return r.stateRead(o.Action)
	case Assertion:
		return r.assertion(o.Action)
	}
	return output, err
}

// call calls the action's tool. Whatever the tool says, a deadline that has passed is a time-out.
func (r *run) call(ctx context.Context, o *Outcome, attempt int) (json.RawMessage, error) {
	a := o.Action
	o.TimedOut = false
	tool, ok := r.tool(a.Tool)
	if !ok {
		return nil, fmt.Errorf("tool '%.200s' is not registered any more", a.Tool)
	}
	c := &Call{ActionID: a.ID, Tool: a.Tool, Parameters: o.Parameters, Timeout: time.Duration(a.TimeoutMS) * time.Millisecond, Attempt: attempt}
	once := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		once, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	r.cost.ToolCalls++
	var output json.RawMessage
	var err error
	r.unlocked(func() { output, err = tool.Call(once, c) })
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, fmt.Errorf("tool '%.200s': %s", a.Tool, cancelled(ctx.Err()))
	case errors.Is(once.Err(), context.DeadlineExceeded) && err != nil:
		o.TimedOut = true
		return nil, fmt.Errorf("tool '%.200s' timed out (%d ms)", a.Tool, a.TimeoutMS)
	case errors.Is(err, context.DeadlineExceeded): // one that whoever runs the tool has set
		o.TimedOut = true
	}
	return output, err
}

func cancelled(cause error) string {
	if errors.Is(cause, context.DeadlineExceeded) {
		return "the proposal timed out"
	}
	return "the proposal was cancelled"
}

// effects makes what an action that succeeded is expected to bring about part of the state.
func (r *run) effects(o *Outcome) error {
	for key, raw := range o.Action.ExpectedEffects {
		v, err := newValue(key, raw)
		if err == nil {
			err = r.state.write(key, v)
		}
		if err != nil {
			return fmt.Errorf("expected_effects: %w", err)
		}
		o.changed(key, v)
	}
	return nil
}

// wait waits before the attempt that follows attempt. It returns false when there is to be none any more.
func (r *run) wait(attempt int) bool {
	t := time.NewTimer(min(firstBackoff<<min(attempt-1, 10), mostBackoff))
	defer t.Stop()
	r.unlocked(func() {
		select {
		case <-r.begin.Done():
		case <-t.C:
		}
	})
	return r.begin.Err() == nil
}

// unlocked gives the run's lock away while f runs.
func (r *run) unlocked(f func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	f()
}

var _ policy.State = (*Scope)(nil)
