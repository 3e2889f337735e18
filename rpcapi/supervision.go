package rpcapi

import "time"

// The kinds of a decision.
const (
	DecisionAllow    = "allow"
	DecisionDeny     = "deny"
	DecisionEscalate = "escalate" // somebody else is to decide: it waits on, with its time anew
)

// SupervisionFilter says which proposals wait for a supervisor. What is empty takes all. What the filter of another version says more is
// not known here, and takes all.
type SupervisionFilter struct {
	AgentID string   `json:"agent_id,omitempty"`
	Tools   []string `json:"tools,omitempty"` // proposals that call one of them
}

// SupervisionSubscribeParams begin to have proposals wait; again is with another filter.
type SupervisionSubscribeParams struct {
	Filter *SupervisionFilter `json:"filter,omitempty"`
}

// SupervisionSubscribeResult has what waits already.
type SupervisionSubscribeResult struct {
	Subscribed bool     `json:"subscribed"`
	Intents    []Intent `json:"intents"`
}

// SupervisionUnsubscribeResult tells whether there was a subscription.
type SupervisionUnsubscribeResult struct {
	Removed bool `json:"removed"`
}

// SupervisionPendingResult has what waits for a decision, oldest first.
type SupervisionPendingResult struct {
	Intents []Intent `json:"intents"`
}

// An Intent is what waits for a decision, and the params of supervision.intent: a proposal that a supervisor's filter matched, or one action that
// a policy leaves to a person. Of parameters it has the names and a digest, never a value.
type Intent struct {
	IntentID   string         `json:"intent_id"`
	SessionID  string         `json:"session_id"` // of who proposes
	AgentID    string         `json:"agent_id,omitempty"`
	RunID      string         `json:"run_id,omitempty"`
	ProposalID string         `json:"proposal_id,omitempty"`
	Actions    []IntentAction `json:"actions"`
	Reason     string         `json:"reason,omitempty"`   // what the policies say that leave it to a person
	Policies   []string       `json:"policies,omitempty"` // their names
	ParkedAt   time.Time      `json:"parked_at"`
	Deadline   time.Time      `json:"deadline"` // when it is denied
	Escalated  string         `json:"escalated,omitempty"`
}

// An IntentAction is one action of an Intent.
type IntentAction struct {
	ActionID      string   `json:"action_id"`
	Type          string   `json:"type"`
	Tool          string   `json:"tool,omitempty"`
	ParameterKeys []string `json:"parameter_keys"` // sorted
	ParamsDigest  string   `json:"params_digest"`  // BLAKE3 of their canonical JSON, in hex
}

// SupervisionDecideParams decide one intent. Both are required.
type SupervisionDecideParams struct {
	IntentID string   `json:"intent_id"`
	Decision Decision `json:"decision"`
}

// A Decision is a person's.
type Decision struct {
	Kind   string `json:"kind"` // DecisionAllow, …
	Reason string `json:"reason,omitempty"`
}

// SupervisionDecideResult is the reply to supervision.decide.
type SupervisionDecideResult struct {
	IntentID string `json:"intent_id"`
	Decided  bool   `json:"decided"` // false: it waits on, for it was escalated
}
