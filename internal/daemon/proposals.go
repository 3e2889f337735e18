package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// submission is one proposal while it runs: what was in force when it came holds to its end.
type submission struct {
	s     *session
	r     *jsonrpc.Request
	run   runtrace.ID // zero: no turn is recorded
	scope string      // of its policies
	// outputs are the bytes of its result, taken from the session's room until there is a reply. It is asked for one at a time.
	outputs int
}

// takes makes room for an output.
func (sub *submission) takes(bytes int) bool {
	ok := sub.s.room.take(bytes)
	if ok {
		sub.outputs += bytes
	}
	return ok
}

type submissionKey struct{}

func proposalSubmit(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
	p, err := readSubmit(r.Params)
	if err != nil {
		return nil, err
	}
	if p.Proposal == nil {
		return nil, badParams("proposal is required")
	}
	if p.Idempotent && p.Proposal.ID != "" {
		return s.repeats.once(ctx, p.Proposal.ID, func() (*proposal.Result, error) { return s.submit(ctx, r, p) })
	}
	return s.submit(ctx, r, p)
}

// readSubmit reads the params of proposal.submit, of which the proposal is the most and reads itself.
func readSubmit(params []byte) (*rpcapi.ProposalSubmitParams, error) {
	p := new(rpcapi.ProposalSubmitParams)
	if len(params) == 0 {
		return p, nil
	}
	var s jsonscan.Scanner
	s.Reset(params)
	for s.Begin('{'); s.More('}'); {
		var err error
		switch key := string(s.Key()); {
		case s.Null():
		case key == "proposal":
			if raw := s.Raw(); s.Err() == nil {
				p.Proposal, err = proposal.Parse(raw)
			}
		case key == "session_id":
			p.SessionID = s.Text()
		case key == "scope":
			if raw := s.Raw(); s.Err() == nil {
				err = unmarshal(raw, &p.Scope)
			}
		case key == "idempotent":
			p.Idempotent = s.Bool()
		default:
			s.Skip()
		}
		if err != nil {
			return nil, badParams("%v", err)
		}
	}
	if err := s.End(); err != nil {
		return nil, badParams("%v", err)
	}
	return p, nil
}

func (s *session) submit(ctx context.Context, r *jsonrpc.Request, p *rpcapi.ProposalSubmitParams) (*proposal.Result, error) {
	s.mu.Lock()
	sub := &submission{s: s, r: r, run: s.current, scope: s.scopeOf(p.SessionID)}
	agent := s.agent()
	policies := s.policies.inForce(s.d.policies, sub.scope)
	s.mu.Unlock()
	tenant := ""
	if p.Scope != nil {
		tenant = p.Scope.TenantID
	}
	decision := sub.supervised(ctx, agent, p.Proposal)
	if decision != nil && decision.Kind != rpcapi.DecisionAllow {
		return nil, sub.denied(ctx, agent, p.Proposal, reasonOf(decision))
	}
	e := proposal.Executor{
		Tools: &s.tools, Policies: policies, State: s.state.Scope(tenant), Agent: agent,
		Approve: func(ctx context.Context, a *proposal.Action, v *policy.Verdict) {
			parameters, _ := policy.ParseParameters(a.Parameters) // which were read before they were judged
			s.d.supervision.approve(ctx, rpcapi.Intent{SessionID: s.id, AgentID: agent, RunID: sub.run.Run, ProposalID: p.Proposal.ID}, v, parameters)
		},
		Judged: func(ctx context.Context, _ *proposal.Action, v *policy.Verdict) error {
			noteApproval(v, decision)
			return s.judged(ctx, sub.run, v)
		},
		Done: sub.done, Room: sub.takes,
	}
	defer func() { s.room.take(-sub.outputs) }()
	limit := s.d.deadlineOf(p.Proposal)
	timed, cancel := context.WithTimeout(context.WithValue(ctx, submissionKey{}, sub), limit)
	defer cancel()
	result, err := e.Run(timed, p.Proposal)
	if errors.Is(timed.Err(), context.DeadlineExceeded) {
		return nil, jsonrpc.Errorf(rpcapi.CodeDeadline,
			"handler 'proposal.submit' exceeded its %.0fs response deadline; what it did stands in the trace", limit.Seconds())
	}
	if err != nil {
		return nil, submitError(err)
	}
	return result, nil
}

// submitError is an error of the executor as the wire has it: a proposal that cannot run is bad params, but for a failed store.
func submitError(err error) error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) || errors.Is(err, context.Canceled) {
		return err
	}
	return badParams("%v", err)
}

// minDeadline is the least that a proposal may take before it is answered without a result.
const minDeadline = 30 * time.Minute

// deadlineOf is the time for all attempts of all actions, and some for the rest.
func (d *Daemon) deadlineOf(p *proposal.Proposal) time.Duration {
	sum := 15 * time.Second
	for i := range p.Actions {
		a := &p.Actions[i]
		each := d.o.Limits.ToolTimeout
		if a.TimeoutMS > 0 {
			each = time.Duration(min(a.TimeoutMS, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
		sum += each * time.Duration(min(a.Attempts(), 1+proposal.MaxRetries))
	}
	return max(sum, minDeadline)
}

// done records the turn of a tool call that ended. It waits until the turn is on the disk, whatever becomes of the connection:
// what a tool did is not forgotten because nobody waits for the answer.
func (sub *submission) done(ctx context.Context, o *proposal.Outcome) error {
	if sub.run == (runtrace.ID{}) {
		return nil
	}
	s := sub.s
	_, err := s.d.store.Append(context.WithoutCancel(ctx), sub.run, []runtrace.Turn{turnOf(o)})
	var dropped *store.Dropped
	switch {
	case err == nil:
		s.d.metrics.turns.Inc()
		return nil
	case errors.As(err, &dropped):
		s.d.metrics.dropped.With(string(dropped.Reason)).Inc()
		s.log.Warn("turn of a tool call not kept", "run", sub.run.Run, "reason", string(dropped.Reason))
		if dropped.Reason == store.RunTerminal {
			s.ended(sub.run) // by another connection
		}
		return nil
	}
	return s.storeFailed("the turn of action "+printable(o.Action.ID)+" could not be recorded", sub.run.Run, err)
}

// judged logs a verdict and keeps it, with its run where there is one. What cannot be kept does not run.
func (s *session) judged(ctx context.Context, run runtrace.ID, v *policy.Verdict) error {
	decision, level := "allow", slog.LevelDebug
	if !v.Allowed {
		decision, level = "deny", slog.LevelInfo
	}
	if s.log.Enabled(ctx, level) {
		s.log.Log(ctx, level, "policy verdict", "decision", decision, "run", run.Run, "action", v.ActionID, "tool", v.Tool,
			"reason", v.Reason(), "params_digest", v.ParamsDigest().String(), "policy_set", v.PolicySet().String())
	}
	s.d.metrics.verdicts.With(decision).Inc()
	line, err := v.MarshalJSON()
	if err == nil && len(line) > runtrace.MaxLine {
		short := *v
		short.Violations = short.Violations[:min(len(short.Violations), 64)]
		line, err = short.MarshalJSON()
	}
	if err == nil {
		err = s.d.store.Verdict(context.WithoutCancel(ctx), run, line)
	}
	if err != nil {
		return s.storeFailed("the verdict on action "+printable(v.ActionID)+" could not be recorded, so it does not run", run.Run, err)
	}
	return nil
}

// repeats remembers submissions that may come again: which ones, the last maxRepeats of them, and their results as long as
// there is room.
type repeats struct {
	room *quota

	mu    sync.Mutex
	byID  map[string]*repeat
	order []*repeat
}

const maxRepeats = 4096

type repeat struct {
	id     string
	done   chan struct{} // closed when result and err are there
	result *proposal.Result
	err    error
	size   int // of result, taken from room
}

// once runs f the first time that id comes, and gives what came of it to everybody. A submission that came to an error is not
// remembered.
func (r *repeats) once(ctx context.Context, id string, f func() (*proposal.Result, error)) (*proposal.Result, error) {
	r.mu.Lock()
	if earlier := r.byID[id]; earlier != nil {
		r.mu.Unlock()
		return earlier.wait(ctx)
	}
	mine := &repeat{id: id, done: make(chan struct{})}
	r.put(mine)
	r.mu.Unlock()
	defer close(mine.done)
	result, err := (*proposal.Result)(nil), failed("the first submission of this proposal did not end")
	defer func() { r.settle(mine, result, err) }()
	result, err = f()
	return result, err
}

func (one *repeat) wait(ctx context.Context) (*proposal.Result, error) {
	select {
	case <-one.done:
		return one.result, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put remembers one more and forgets the oldest beyond the limit. r.mu is held.
func (r *repeats) put(one *repeat) {
	if r.byID == nil {
		r.byID = make(map[string]*repeat)
	}
	r.byID[one.id] = one
	if r.order = append(r.order, one); len(r.order) > maxRepeats {
		r.forget(r.order[0])
		r.order = r.order[1:]
	}
}

// forget takes one out, if it is still the one of its id. r.mu is held.
func (r *repeats) forget(one *repeat) {
	if r.byID[one.id] == one {
		delete(r.byID, one.id)
	}
	r.room.take(-one.size)
	one.size = 0
}

// settle keeps what came of one. A result for which there is no room is not kept; that it ran is.
func (r *repeats) settle(one *repeat, result *proposal.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		one.err = err
		r.forget(one)
		return
	}
	if r.byID[one.id] != one { // so many came since that it is forgotten: those who wait for it have the result, nobody keeps it
		one.result = result
		return
	}
	if size := sizeOf(result); r.room.take(size) {
		one.size, one.result = size, result
		return
	}
	one.err = failed("this proposal ran already, and there was no room to keep its result: its turns are in the trace")
}

// sizeOf is about how many bytes a result holds.
func sizeOf(r *proposal.Result) int {
	n := len(r.ProposalID)
	for i := range r.Results {
		a := &r.Results[i]
		n += 256 + len(a.ActionID) + len(a.Output)
		if a.Error != nil {
			n += len(*a.Error)
		}
		for k, v := range a.StateChanges {
			n += 64 + len(k) + len(v)
		}
	}
	return n
}

// callBack calls a tool of a session's client: tools.execute, and tools.cancel when nobody waits for it any longer.
func callBack(ctx context.Context, c *proposal.Call) (json.RawMessage, error) {
	sub := ctx.Value(submissionKey{}).(*submission) // submit put it there
	s := sub.s
	limit := s.d.o.Limits.ToolTimeout
	if c.Timeout == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	} else {
		limit = c.Timeout
	}
	p := rpcapi.ToolsExecuteParams{ActionID: c.ActionID, Tool: c.Tool, Parameters: c.Parameters, Params: c.Parameters, Attempt: c.Attempt,
		RequestID: s.conn.NewID(), SessionID: cmp.Or(sub.scope, s.id)}
	if ms := c.Timeout.Milliseconds(); c.Timeout > 0 {
		p.TimeoutMS = &ms
	}
	var output json.RawMessage
	err := sub.r.Call(ctx, p.RequestID, rpcapi.ToolsExecute, &p, &output)
	s.d.metrics.callbacks.With(outcomeOf(err)).Inc()
	if err == nil {
		if len(output) == 0 {
			output = json.RawMessage("null")
		}
		return output, nil
	}
	return nil, sub.notCalled(ctx, c, p.RequestID, limit, err)
}

// notCalled says in the words of a result why a call has no output, and tells the client where it is the daemon that gave up.
func (sub *submission) notCalled(ctx context.Context, c *proposal.Call, id string, limit time.Duration, err error) error {
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &said):
		return errors.New(cmp.Or(said.Message, fmt.Sprintf("tool '%s' failed with code %d, and did not say why", c.Tool, said.Code)))
	case errors.Is(err, jsonrpc.ErrClosed):
		return errors.New("the connection went away before the tool answered")
	case ctx.Err() == nil:
		return err
	}
	reason := fmt.Sprintf("tool '%s' callback cancelled", c.Tool)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = fmt.Sprintf("tool '%s' callback timed out (%gs)", c.Tool, limit.Seconds())
	}
	_ = sub.s.conn.Notify(rpcapi.ToolsCancel, rpcapi.ToolsCancelParams{RequestID: id, ActionID: c.ActionID, Reason: reason})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", reason, context.DeadlineExceeded)
	}
	return ctx.Err()
}

func outcomeOf(err error) string {
	var said *jsonrpc.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &said):
		return "error"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, jsonrpc.ErrClosed):
		return "closed"
	}
	return "cancelled"
}
