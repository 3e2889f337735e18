package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
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

// Tools are those that a proposal may call.
type Tools interface {
	// Tool returns the tool of that name.
	Tool(name string) (*Tool, bool)
}

// A Call is one attempt to call a tool.
type Call struct {
	ActionID   string
	Tool       string
	Parameters json.RawMessage // an object; "{}" where there were none
	Timeout    time.Duration   // 0: none; the context has it as its deadline
	Attempt    int             // from 1
}

// MaxRunning is how many tools of one proposal run at once; more wait for one of them to end.
const MaxRunning = 64

// An Executor runs proposals. Its fields are set before the first.
type Executor struct {
	Tools    Tools       // nil: no tool is registered
	Policies *policy.Set // nil: none
	State    *Scope      // nil: an empty one of its own for each proposal
	Agent    string      // who proposes, for policies
	// Approve has a person look at an action that policies leave to one (v.Asks), and settles v. nil: it is denied.
	Approve func(ctx context.Context, a *Action, v *policy.Verdict)
	// Judged is told every verdict, of allowed actions too, before anything of the action runs. An error ends the proposal:
	// what cannot be written down does not run.
	Judged func(ctx context.Context, a *Action, v *policy.Verdict) error
	// Done is told the end of every tool_call that came to a verdict or was refused before one (not of those that were
	// skipped), one after another in the order of the actions: of one that ends early when those before it have ended. An error
	// ends the proposal.
	Done func(ctx context.Context, o *Outcome) error
	// Room, where it is set, is asked for the bytes of each output before it becomes part of the result; one that it refuses with
	// false is dropped, and its action has failed, for good. It is asked one at a time.
	Room func(bytes int) bool
	// Now is the clock of timestamps; nil is time.Now.
	Now func() time.Time
}

// An Outcome is one tool_call that ended, as a turn needs it.
type Outcome struct {
	Action     *Action
	Parameters json.RawMessage // as they came; "{}" where there were none
	Verdict    *policy.Verdict // nil where the action was refused before policies judged
	Result     *ActionResult
	TimedOut   bool // the last attempt ran out of time: the action's own, or that of whoever runs the tool
}

// A run is one proposal while it runs. Run decides on one action after another; each tool that may be called has a goroutine,
// for which Run waits.
type run struct {
	*Executor
	proposal *Proposal
	graph    *graph
	order    []int
	begin    context.Context // ends when nothing more is to begin
	stop     func()          // ends it
	cancel   func()          // ends what runs, too

	mu       sync.Mutex // guards what follows, and is held but while a tool, a person or time is waited for
	ended    sync.Cond  // of mu: an action has ended
	state    *transaction
	results  []ActionResult // in the order of the proposal; those without a status have not ended
	outcomes []*Outcome     // of those that began
	done     []bool         // those that ended
	told     int            // of order: those whose end Done was told, or that had none to tell
	running  int            // tools
	aborted  bool
	ok       map[string]bool
	cost     Cost
	err      error // of a hook
	panicked any   // what a tool has panicked with
}

// Run runs p to its end, also when ctx is cancelled: what has not run then is skipped. The error is a *CycleError, and nothing
// ran; or it is that of a hook or a policy's log, and the proposal ended there, with its state rolled back.
func (e *Executor) Run(ctx context.Context, p *Proposal) (*Result, error) {
	g := newGraph(p.Actions)
	order, err := g.order()
	if err != nil {
		return nil, err
	}
	g.hold(order)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := e.start(ctx, p)
	r.graph, r.order, r.cancel = g, order, cancel
	began := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.stop()
	r.all(ctx)
	if r.panicked != nil {
		panic(r.panicked) // where whoever called Run can catch it
	}
	if r.err != nil {
		r.state.rollback()
		return nil, r.err
	}
	r.finish(ctx.Err())
	r.cost.TotalDurationMS = milliseconds(time.Since(began))
	return &Result{p.ID, r.results, r.cost}, nil
}

func (e *Executor) start(ctx context.Context, p *Proposal) *run {
	scope := e.State
	if scope == nil {
		scope = new(State).Scope("")
	}
	n := len(p.Actions)
	r := &run{Executor: e, proposal: p, state: scope.begin(), results: make([]ActionResult, n), outcomes: make([]*Outcome, n),
		done: make([]bool, n), ok: make(map[string]bool)}
	r.ended.L = &r.mu
	r.begin, r.stop = context.WithCancel(ctx)
	return r
}

// all begins the actions, each as soon as those that it waits for have ended, and waits for the last.
func (r *run) all(ctx context.Context) {
	for {
		if i := r.next(); i >= 0 {
			r.action(ctx, i)
		} else if r.running > 0 {
			r.ended.Wait()
		} else {
			r.stop()
			r.tell(ctx)
			return
		}
	}
}

// next is the first action in order that may begin now; -1 is none.
func (r *run) next() int {
	if r.begin.Err() != nil || r.running >= MaxRunning {
		return -1
	}
	for _, i := range r.order[r.told:] { // those told have begun
		if r.outcomes[i] == nil && r.graph.ready(i, r.done) {
			return i
		}
	}
	return -1
}

// action decides on one action, and runs it: a tool beside all others.
func (r *run) action(ctx context.Context, i int) {
	o := &Outcome{Action: &r.proposal.Actions[i], Result: &r.results[i]}
	o.Result.StateChanges = make(map[string]json.RawMessage)
	r.outcomes[i] = o
	began := time.Now()
	allowed, err := r.decide(ctx, o)
	switch {
	case err != nil:
		r.fail(err)
	case allowed && r.begin.Err() != nil: // the proposal ended while a person looked at it
		r.outcomes[i] = nil
	case allowed && o.Action.Type == ToolCall:
		r.running++
		go r.beside(ctx, i, began)
	default:
		if allowed {
			r.execute(ctx, o)
		}
		r.end(ctx, i, began)
	}
}

// beside runs the tool of an action to its end.
func (r *run) beside(ctx context.Context, i int, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.ended.Signal()
	defer func() {
		r.running--
		if p := recover(); p != nil {
			r.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
			r.stop()
			r.cancel()
		}
	}()
	r.execute(ctx, r.outcomes[i])
	r.end(ctx, i, began)
}

// end counts an action that has a status, and tells the hook what it may know now.
func (r *run) end(ctx context.Context, i int, began time.Time) {
	res := &r.results[i]
	res.ActionID = r.proposal.Actions[i].ID
	res.DurationMS, res.Timestamp = milliseconds(time.Since(began)), r.now()
	switch res.Status {
	case Rejected:
		r.cost.ActionsRejected++
	case Succeeded:
		r.ok[res.ActionID] = true
		fallthrough
	default:
		r.cost.ActionsExecuted++
	}
	r.done[i] = true
	if r.aborts(i) {
		r.aborted = true
		r.stop()
	}
	r.tell(ctx)
}

// tell tells Done the ends of tool calls in order, up to the first that may still come. What is not to begin is passed over.
func (r *run) tell(ctx context.Context) {
	for ; r.told < len(r.order) && r.err == nil; r.told++ {
		i := r.order[r.told]
		switch o := r.outcomes[i]; {
		case o == nil && r.begin.Err() == nil || o != nil && !r.done[i]:
			return
		case o != nil && o.Action.Type == ToolCall && r.Done != nil:
			if err := r.Done(ctx, o); err != nil {
				r.fail(err)
			}
		}
	}
}

// fail ends the proposal with the error of a hook.
func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.stop()
	r.cancel()
}

// decide takes an action through its steps, up to where it is allowed to run, or to a status.
func (r *run) decide(ctx context.Context, o *Outcome) (allowed bool, err error) {
	parameters, problem := r.validate(o)
	if problem != "" {
		o.Result.end(Rejected, nil, problem)
		return false, nil
	}
	a := o.Action
	act := &policy.Action{ID: a.ID, Type: a.Type, Tool: toolOf(a), Parameters: parameters}
	verdict := r.Policies.Check(act, r.state, r.Agent)
	if r.Approve != nil && verdict.Asks() {
		r.unlocked(func() { r.Approve(ctx, a, &verdict) })
		now := r.Policies.Check(act, r.state, r.Agent)
		verdict.Stand(&now)
		if _, problem = r.validate(o); problem != "" {
			o.Result.end(Rejected, nil, problem)
			return false, nil
		}
	}
	o.Verdict = &verdict
	if r.Judged != nil {
		if err := r.Judged(ctx, a, &verdict); err != nil {
			return false, err
		}
	}
	if !verdict.Allowed {
		o.Result.end(Rejected, nil, denial(&verdict))
	}
	return verdict.Allowed, nil
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

// finish skips what did not begin. It makes what was written stay, or takes it back and says so of each action that had succeeded.
func (r *run) finish(cause error) {
	aborted := r.aborted
	for _, i := range r.order {
		if r.outcomes[i] == nil {
			r.skip(i, cause)
			aborted = true
		}
	}
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
