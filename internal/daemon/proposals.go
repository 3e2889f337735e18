package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
				err = json.Unmarshal(raw, &p.Scope)
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
		Tools: s, Policies: policies, State: s.state.Scope(tenant), Agent: agent,
		Approve: func(ctx context.Context, a *proposal.Action, v *policy.Verdict) {
			parameters, _ := policy.ParseParameters(a.Parameters) // which were read before they were judged
			s.approve(ctx, sub.run.Run, agent, p.Proposal.ID, v, parameters)
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
