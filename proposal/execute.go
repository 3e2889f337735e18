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

// execute runs an action that is allowed, as often as its failures ask for, and then makes its effects part of the state.
func (r *run) execute(ctx context.Context, o *Outcome) {
	a := o.Action
	for attempt := 1; ; attempt++ {
		r.state.mark()
		output, err := r.attempt(ctx, o, attempt)
		full := err == nil && r.Room != nil && !r.Room(len(output))
		switch {
		case full:
			err = fmt.Errorf("it ran, and its output of %d bytes was dropped: no room is left for what this proposal gives", len(output))
		case err == nil:
			err = r.effects(a)
		}
		if err == nil {
			r.state.keep()
			o.Result.end(Succeeded, output, "")
			return
		}
		r.state.back()
		clear(r.changes)
		if full || attempt == a.Attempts() || !wait(ctx, attempt) {
			o.Result.end(Failed, nil, err.Error())
			return
		}
		r.cost.Retries++
	}
}

// attempt runs an action once.
func (r *run) attempt(ctx context.Context, o *Outcome, attempt int) (json.RawMessage, error) {
	switch o.Action.Type {
	case StateWrite:
		return r.stateWrite(o.Action)
	case StateRead:
		return r.stateRead(o.Action)
	case Assertion:
		return r.assertion(o.Action)
	}
	return r.call(ctx, o, attempt)
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
	output, err := tool.Call(once, c)
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
func (r *run) effects(a *Action) error {
	for key, raw := range a.ExpectedEffects {
		v, err := newValue(key, raw)
		if err == nil {
			err = r.state.write(key, v)
		}
		if err != nil {
			return fmt.Errorf("expected_effects: %w", err)
		}
		r.changed(key, v)
	}
	return nil
}

// wait waits before the attempt that follows attempt. It returns false when there is no use in one.
func wait(ctx context.Context, attempt int) bool {
	t := time.NewTimer(min(firstBackoff<<min(attempt-1, 10), mostBackoff))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

var _ policy.State = (*Scope)(nil)
