package proposal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// A run is one proposal while it runs.
type run struct {
	*Executor
	proposal *Proposal
	state    *transaction
	results  []ActionResult // in the order of the proposal; those without a status have not ended
	ok       map[string]bool
	cost     Cost
	changes  map[string]json.RawMessage // of the action that runs
}

// Run runs p to its end, also when ctx is cancelled: what has not run then is skipped. The error is a *CycleError, and nothing
// ran; or it is that of a hook or a policy's log, and the proposal ended there, with its state rolled back.
func (e *Executor) Run(ctx context.Context, p *Proposal) (*Result, error) {
	order, err := order(p.Actions)
	if err != nil {
		return nil, err
	}
	r := e.start(p)
	began := time.Now()
	aborted := false
	for _, i := range order {
		if aborted || ctx.Err() != nil {
			r.skip(i, ctx.Err())
			aborted = true
			continue
		}
		if err := r.action(ctx, i); err != nil {
			r.state.rollback()
			return nil, err
		}
		aborted = r.aborts(i)
	}
	r.finish(aborted)
	r.cost.TotalDurationMS = milliseconds(time.Since(began))
	return &Result{p.ID, r.results, r.cost}, nil
}

func (e *Executor) start(p *Proposal) *run {
	scope := e.State
	if scope == nil {
		scope = new(State).Scope("")
	}
	return &run{Executor: e, proposal: p, state: scope.begin(), results: make([]ActionResult, len(p.Actions)), ok: make(map[string]bool)}
}

// action runs one action and tells the hooks.
func (r *run) action(ctx context.Context, i int) error {
	a := &r.proposal.Actions[i]
	o := &Outcome{Action: a, Result: &r.results[i]}
	began := time.Now()
	r.changes = make(map[string]json.RawMessage)
	if err := r.decide(ctx, o); err != nil {
		return err
	}
	res := o.Result
	res.ActionID, res.StateChanges = a.ID, r.changes
	res.DurationMS, res.Timestamp = milliseconds(time.Since(began)), r.now()
	switch res.Status {
	case Rejected:
		r.cost.ActionsRejected++
	case Succeeded:
		r.ok[a.ID] = true
		fallthrough
	default:
		r.cost.ActionsExecuted++
	}
	if r.Done != nil && a.Type == ToolCall {
		return r.Done(ctx, o)
	}
	return nil
}

// decide takes an action through its steps, to a status.
func (r *run) decide(ctx context.Context, o *Outcome) error {
	parameters, problem := r.validate(o)
	if problem != "" {
		o.Result.end(Rejected, nil, problem)
		return nil
	}
	a := o.Action
	act := &policy.Action{ID: a.ID, Type: a.Type, Tool: toolOf(a), Parameters: parameters}
	verdict := r.Policies.Check(act, r.state, r.Agent)
	if r.Approve != nil && verdict.Asks() {
		r.Approve(ctx, a, &verdict)
		now := r.Policies.Check(act, r.state, r.Agent)
		verdict.Stand(&now)
		if _, problem = r.validate(o); problem != "" {
			o.Result.end(Rejected, nil, problem)
			return nil
		}
	}
	o.Verdict = &verdict
	if r.Judged != nil {
		if err := r.Judged(ctx, a, &verdict); err != nil {
			return err
		}
	}
	if !verdict.Allowed {
		o.Result.end(Rejected, nil, denial(&verdict))
		return nil
	}
	r.execute(ctx, o)
	return nil
}

// toolOf is what policies judge by: an action of another type calls no tool, whatever it names.
func toolOf(a *Action) string {
	if a.Type == ToolCall {
		return a.Tool
	}
	return ""
}

// denial is the error of an action that policies denied: each with its reason.
func denial(v *policy.Verdict) string {
	text := ""
	for i, violation := range v.Violations {
		if i > 0 {
			text += "; "
		}
		text += "policy '" + violation.PolicyName + "': " + violation.Reason
	}
	return text
}

// aborts reports whether nothing runs after action i. A retry that did not help aborts, as does one that was never to be tried.
func (r *run) aborts(i int) bool {
	return r.results[i].Status != Succeeded && r.proposal.Actions[i].FailureBehavior != Skip
}

// skip ends an action that never began.
func (r *run) skip(i int, cause error) {
	problem := "skipped: an action before it was not done, and the proposal was aborted"
	if cause != nil {
		problem = "skipped: " + cancelled(cause)
	}
	res := &r.results[i]
	res.end(Skipped, nil, problem)
	res.ActionID, res.Timestamp, res.StateChanges = r.proposal.Actions[i].ID, r.now(), map[string]json.RawMessage{}
	r.cost.ActionsSkipped++
}

// finish makes what was written stay, or takes it back and says so of each action that had succeeded.
func (r *run) finish(aborted bool) {
	if !aborted {
		r.state.commit()
		return
	}
	r.state.rollback()
	for i := range r.results {
		if r.results[i].Status == Succeeded {
			r.results[i].RolledBack = true
		}
		r.results[i].StateChanges = map[string]json.RawMessage{}
	}
}

func (res *ActionResult) end(status string, output json.RawMessage, problem string) {
	res.Status, res.Output = status, output
	if problem != "" {
		res.Error = &problem
	}
}

func (r *run) now() string {
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	return now().UTC().Format(time.RFC3339Nano)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
