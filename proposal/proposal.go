package proposal

import "encoding/json"

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
