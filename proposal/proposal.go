// Package proposal runs the actions of a proposal: their order, their preconditions, what their failure comes to.
//
// Goals: what an agent proposes runs as its dependencies allow, and what is independent at once, under policies; every action
// has a result that says what became of it; and a proposal that is aborted leaves the state as if it had not been.
//
// A Proposal has actions of four types: tool_call (a registered tool, called through Tool.Call: this package calls nothing
// itself), state_write (parameters key and value), state_read (parameters key) and assertion (its preconditions, and nothing
// else). docs/reference/policy.md tells what policies judge.
//
// One action goes through these steps. The first that fails decides its status:
//
//  1. its tool is registered, and its parameters agree with the tool's JSON Schema: else rejected
//  2. its preconditions hold in the state, and what it depends on is there: else rejected (of an assertion: failed, in step 4)
//  3. every policy of the set allows it, or a person what policies leave to one: else rejected, with all violations
//  4. it runs, within timeout_ms, again after a failure where it may be repeated: succeeded or failed
//  5. its expected effects become part of the state
//
// What was rejected in 1 to 3 never ran. What failure_behavior is, decides how the proposal goes on after an action that was
// rejected or failed: abort (which is the default), and retry when nothing helped, skip all that follow and take back what the
// proposal wrote to the state; skip goes on.
// What runs already when an action aborts runs to its end; what waits for another attempt gets none.
//
// Ordering: an action comes after those that it depends on, and else where it stands; graph.hold says what waits besides. One
// action is decided on at a time, in that order; tools then run beside each other, at most MaxRunning. Results and the ends that
// Done is told stand in order too, whatever ended first. A cycle is an error of the whole, and nothing runs.
//
// State: a State keeps values of one connection, apart for each tenant, bounded. Rolling back puts back each key that the
// proposal wrote, unless somebody else has written it since: what another proposal wrote stays.
//
// Concurrency: an Executor runs any number of proposals at once; no goroutine of a proposal is left when Run returns. A cancelled
// context fails the actions that run, and skips the others.
//
// Not goals: knowing a wire, keeping results.
package proposal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// The types of actions.
const (
	ToolCall   = "tool_call"
	StateWrite = "state_write"
	StateRead  = "state_read"
	Assertion  = "assertion"
)

// What becomes of a proposal after an action that was rejected or failed.
const (
	Abort = "abort" // nothing that follows runs, and the state is rolled back
	Retry = "retry" // the action is tried again after a failure, as often as its max_retries says; then as Abort
	Skip  = "skip"  // the proposal goes on
)

// The statuses of actions. Results have Rejected, Succeeded, Failed and Skipped.
const (
	Proposed  = "proposed"
	Validated = "validated"
	Rejected  = "rejected"
	Executing = "executing"
	Succeeded = "succeeded"
	Failed    = "failed"
	Skipped   = "skipped"
)

// Limits of a proposal. What is over one is refused when it is read.
const (
	MaxActions       = 1000
	MaxPreconditions = 100
	MaxDependencies  = 100
	MaxEffects       = 1000
	MaxRetries       = 100
	MaxTimeoutMS     = 24 * 60 * 60 * 1000
	DefaultRetries   = 3
)

// A Proposal is a list of actions that are to be done together.
type Proposal struct {
	ID        string          `json:"id,omitempty"` // a label
	Source    string          `json:"source,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
	Actions   []Action        `json:"actions"`
	Context   json.RawMessage `json:"context,omitempty"`
}

// An Action is one thing to do. Only Type must be there, and Tool of a tool_call.
type Action struct {
	ID                string                     `json:"id,omitempty"`
	Type              string                     `json:"type"`
	Tool              string                     `json:"tool,omitempty"`
	Parameters        json.RawMessage            `json:"parameters,omitempty"`
	Preconditions     []Precondition             `json:"preconditions,omitempty"`
	ExpectedEffects   map[string]json.RawMessage `json:"expected_effects,omitempty"`
	StateDependencies []string                   `json:"state_dependencies,omitempty"`
	Idempotent        bool                       `json:"idempotent,omitempty"`
	MaxRetries        *int                       `json:"max_retries,omitempty"`      // nil is DefaultRetries
	FailureBehavior   string                     `json:"failure_behavior,omitempty"` // "" is Abort
	TimeoutMS         int64                      `json:"timeout_ms,omitempty"`       // 0: none of its own
	Reversibility     json.RawMessage            `json:"reversibility,omitempty"`
	Compensation      json.RawMessage            `json:"compensation,omitempty"`
	Metadata          json.RawMessage            `json:"metadata,omitempty"`
}

// Attempts returns how often the action is tried at most: once, and after a failure MaxRetries times where it is idempotent or
// its failure behaviour is Retry.
func (a *Action) Attempts() int {
	switch {
	case !a.Idempotent && a.FailureBehavior != Retry:
		return 1
	case a.MaxRetries == nil:
		return 1 + DefaultRetries
	}
	return 1 + max(0, *a.MaxRetries)
}

// A Precondition is what the state must be like before an action.
type Precondition struct {
	Key      string          `json:"key"`
	Operator string          `json:"operator,omitempty"` // "" is eq; eq neq gt lt gte lte exists not_exists contains
	Value    json.RawMessage `json:"value,omitempty"`
}

// A Result is what became of a proposal.
type Result struct {
	ProposalID string         `json:"proposal_id"`
	Results    []ActionResult `json:"results"` // of every action, in the order of the proposal
	Cost       Cost           `json:"cost"`
}

// An ActionResult is what became of one action.
type ActionResult struct {
	ActionID     string                     `json:"action_id"`
	Status       string                     `json:"status"`
	Output       json.RawMessage            `json:"output"` // null where there is none
	Error        *string                    `json:"error"`
	StateChanges map[string]json.RawMessage `json:"state_changes"`
	DurationMS   float64                    `json:"duration_ms"`
	Timestamp    string                     `json:"timestamp"` // RFC 3339, UTC, when it ended
	RolledBack   bool                       `json:"rolled_back,omitempty"`
}

// A Cost counts what a proposal took.
type Cost struct {
	ToolCalls       int     `json:"tool_calls"`       // tools' bodies that were called, each attempt
	ActionsExecuted int     `json:"actions_executed"` // that ran, whether they succeeded or failed
	ActionsRejected int     `json:"actions_rejected"`
	ActionsSkipped  int     `json:"actions_skipped"`
	TotalDurationMS float64 `json:"total_duration_ms"`
	Retries         int     `json:"retries"`
}

// A Definition is a tool as a client registers it.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema; no bytes, null and {} are none: anything passes
}

// A Tool is a registered tool.
type Tool struct {
	Definition
	// Call runs the tool once. ctx ends with the action's timeout_ms and with the proposal. The output is kept as it is.
	Call   func(ctx context.Context, c *Call) (output json.RawMessage, err error)
	Schema Schema // nil lets anything pass
}

// A Schema checks the parameters of a tool's calls; toolschema compiles them.
type Schema interface {
	// Problem says what of the parameters is not allowed, for people; "" is nothing.
	Problem(tool string, parameters *policy.Parameters) string
}

// A CycleError says that actions wait for each other.
type CycleError struct{ IDs []string } // of the actions of one cycle, each after the one that it waits for

func (e *CycleError) Error() string {
	ids := e.IDs
	if len(ids) > 10 {
		ids = append(append([]string{}, ids[:10]...), "…")
	}
	return fmt.Sprintf("proposal: actions wait for each other in a circle over state_dependencies: %.1000s", strings.Join(ids, ", "))
}

// A graph is the actions of a proposal and which of them come before others.
type graph struct {
	actions []Action
	before  [][]int // of each action, those that it waits for
}

// newGraph finds what each action waits for. A dependency is a key of the state, which the action waits for that writes it: a
// state_write of it, or one that has it among its expected effects; the last that stands before it, else the first behind.
// One that nobody in the proposal writes is the id of an action, or waits for nothing. Actions that write one key stay in
// their order.
func newGraph(actions []Action) *graph {
	g := &graph{actions, make([][]int, len(actions))}
	writers := make(map[string][]int)
	ids := make(map[string]int)
	for i := range actions {
		for _, key := range writes(&actions[i]) {
			if w := writers[key]; len(w) > 0 {
				g.wait(i, w[len(w)-1])
			}
			writers[key] = append(writers[key], i)
		}
		if _, twice := ids[actions[i].ID]; !twice {
			ids[actions[i].ID] = i
		}
	}
	for i := range actions {
		for _, dep := range actions[i].StateDependencies {
			if w := producer(writers[dep], i); w >= 0 {
				g.wait(i, w)
			} else if id, ok := ids[dep]; ok {
				g.wait(i, id)
			}
		}
	}
	return g
}

func (g *graph) wait(i, for_ int) {
	if i != for_ {
		g.before[i] = append(g.before[i], for_)
	}
}

// producer is the last of writers, which are sorted, before action i, else the first behind it, else -1.
func producer(writers []int, i int) int {
	found := -1
	for _, w := range writers {
		if w < i || found < 0 && w > i {
			found = w
		}
	}
	return found
}

// writes are the keys that an action writes when it succeeds.
func writes(a *Action) []string {
	var keys []string
	if a.Type == StateWrite {
		if _, key, err := paramsOf(a.Parameters); err == nil {
			keys = append(keys, key)
		}
	}
	for key := range a.ExpectedEffects {
		if len(keys) == 0 || key != keys[0] {
			keys = append(keys, key)
		}
	}
	return keys
}

// order returns the indices of the actions, each behind those that it waits for and else where it stands. The error is a
// *CycleError.
func (g *graph) order() ([]int, error) {
	out := make([]int, 0, len(g.actions))
	done := make([]bool, len(g.actions))
	for len(out) < len(g.actions) {
		next := -1
		for i := range g.actions {
			if !done[i] && g.ready(i, done) {
				next = i
				break
			}
		}
		if next < 0 {
			return nil, g.cycle(done)
		}
		done[next] = true
		out = append(out, next)
	}
	return out, nil
}

// hold has actions wait besides for those before them in order whose end they would notice: what writes a key and what names it
// keep their order; a state_read and an assertion come behind all before them, for nobody knows what tools write to the state
// themselves; and what stands behind an assertion comes behind it. All that waits, waits for what order has before it: no circle.
func (g *graph) hold(order []int) {
	assertion := -1
	writer, readers := make(map[string]int), make(map[string][]int) // of each key: the last that writes it, who has read it since
	for at, i := range order {
		a := &g.actions[i]
		switch {
		case a.Type == StateRead || a.Type == Assertion:
			g.before[i] = append(g.before[i], order[:at]...)
		case assertion >= 0:
			g.wait(i, assertion)
		}
		if a.Type == Assertion {
			assertion = i
		}
		for _, key := range reads(a) {
			if w, ok := writer[key]; ok {
				g.wait(i, w)
			}
			readers[key] = append(readers[key], i)
		}
		for _, key := range writes(a) {
			g.before[i] = append(g.before[i], slices.DeleteFunc(readers[key], func(r int) bool { return r == i })...)
			delete(readers, key)
			writer[key] = i
		}
	}
}

// reads are the keys whose values an action names: those of an assertion's parameters are left out, which holds up all others.
func reads(a *Action) []string {
	keys := slices.Clone(a.StateDependencies)
	for i := range a.Preconditions {
		keys = append(keys, a.Preconditions[i].Key)
	}
	if a.Type == StateRead {
		if _, key, err := paramsOf(a.Parameters); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

func (g *graph) ready(i int, done []bool) bool {
	for _, w := range g.before[i] {
		if !done[w] {
			return false
		}
	}
	return true
}

// cycle follows what is not done from one to one that it waits for, until one comes again.
func (g *graph) cycle(done []bool) *CycleError {
	at := 0
	for done[at] {
		at++
	}
	seen := make(map[int]int)
	var path []int
	for {
		if from, again := seen[at]; again {
			path = path[from:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		for _, w := range g.before[at] {
			if !done[w] {
				at = w
				break
			}
		}
	}
	e := &CycleError{}
	for i := len(path) - 1; i >= 0; i-- {
		e.IDs = append(e.IDs, g.actions[path[i]].ID)
	}
	return e
}
