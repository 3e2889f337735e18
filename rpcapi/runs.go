package rpcapi

import (
	"encoding/json"
	"time"
)

// RunsStartParams opens a run. Its agent is AgentID, else the one that session.auth bound, else name:<slug> of AgentName.
type RunsStartParams struct {
	Intent             string `json:"intent"`
	AgentID            string `json:"agent_id,omitempty"`
	AgentName          string `json:"agent_name,omitempty"`
	OutcomeDescription string `json:"outcome_description,omitempty"`
	// IdempotencyKey becomes the run id: a run of this agent that exists under it is returned and none is made.
	IdempotencyKey string     `json:"idempotency_key,omitempty"`
	Recording      *Recording `json:"recording,omitempty"` // ours
}

// RunsStartResult is the reply to runs.start; the run is the session's current one by then.
type RunsStartResult struct {
	RunID   string `json:"run_id"`
	AgentID string `json:"agent_id"`
}

// RunsCompleteParams ends a run.
type RunsCompleteParams struct {
	RunID   string  `json:"run_id"`  // required
	Outcome Outcome `json:"outcome"` // required
}

// RunsCompleteResult is the reply to runs.complete.
type RunsCompleteResult struct {
	RunID string `json:"run_id"`
	OK    bool   `json:"ok"`
}

// RunsRecordTurnsParams are turns for the end of an open run. Their indices count for nothing: the daemon stamps its own.
type RunsRecordTurnsParams struct {
	RunID string `json:"run_id"` // required
	Turns []Turn `json:"turns"`  // required: 1 to 256
}

// RunsRecordTurnsResult is the reply to runs.record_turns. A batch that was dropped has OK false, BaseIndex and Count 0, and
// the reason; a batch is kept whole or dropped whole.
type RunsRecordTurnsResult struct {
	RunID     string `json:"run_id"`
	BaseIndex int    `json:"base_index"`
	Count     int    `json:"count"`
	OK        bool   `json:"ok"`
	Dropped   string `json:"dropped,omitempty"` // run_not_found, run_terminal, run_turn_limit or turn_too_large
}

// RunsVerdictsResult is the reply to runs.verdicts (ours): what policies said of the run's actions, in order.
type RunsVerdictsResult struct {
	RunID    string              `json:"run_id"`
	AgentID  string              `json:"agent_id"`
	Verdicts []PolicyCheckResult `json:"verdicts"`
}

// RunParams of runs.subscribe, .unsubscribe and runs.verdicts.
type RunParams struct {
	RunID string `json:"run_id"` // required
}

// RunsSubscribeResult is the reply to runs.subscribe. TurnsSoFar are records, tagged as on the disk, and Cursor is their
// number; the first turn that runs.trace.event brings has the next one. No event comes before this reply.
type RunsSubscribeResult struct {
	RunID      string            `json:"run_id"`
	AgentID    string            `json:"agent_id"`
	TurnsSoFar []json.RawMessage `json:"turns_so_far"`
	Cursor     int               `json:"cursor"`
	Status     string            `json:"status"`
}

// RunsTraceEventParams of the notification runs.trace.event. Cursor is the number of turns up to and with Record, and one more
// for an ended record: each event's is one more than that of the one before it, and runs.get_trace takes it.
type RunsTraceEventParams struct {
	RunID   string          `json:"run_id"`
	AgentID string          `json:"agent_id"`
	Record  json.RawMessage `json:"record"`
	Cursor  int             `json:"cursor"`
	Status  string          `json:"status"`
}

// RunsTraceLostParams of the notification runs.trace.lost (ours): the subscriber read too slowly, so that events are missing
// from here on. runs.get_trace with Cursor gives them; events go on behind them.
type RunsTraceLostParams struct {
	RunID   string `json:"run_id"`
	AgentID string `json:"agent_id"`
	Cursor  int    `json:"cursor"` // the index of the first record that was not sent, as runs.get_trace takes it
	Lost    int    `json:"lost"`   // how many
}

// RunsUnsubscribeResult is the reply to runs.unsubscribe.
type RunsUnsubscribeResult struct {
	RunID   string `json:"run_id"`
	Removed bool   `json:"removed"`
}

// RunsListParams names the agent whose runs are asked for. Ours: the host role leaves it out for those of every agent.
type RunsListParams struct {
	AgentID string `json:"agent_id,omitempty"`
	Limit   int    `json:"limit,omitempty"` // ours: at most so many of the newest; 0 is all
}

// RunsListResult is the reply to runs.list, newest first. AgentID is "" when the runs of every agent were asked for.
type RunsListResult struct {
	AgentID string    `json:"agent_id"`
	Runs    []RunInfo `json:"runs"`
}

// RunInfo is one run of a list.
type RunInfo struct {
	RunID     string     `json:"run_id"`
	AgentID   string     `json:"agent_id"`
	Intent    string     `json:"intent"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Status    string     `json:"status"`
	TurnCount int        `json:"turn_count"`
}

// RunsGetTraceParams asks for the records of a run as they stand on the disk. Cursor is the index of the first one wanted;
// that of the started record is 0, of the first turn 1.
type RunsGetTraceParams struct {
	RunID  string `json:"run_id"` // required
	Cursor int    `json:"cursor,omitempty"`
}

// RunsGetTraceResult is the reply to runs.get_trace. Of a run that is not there, or not the caller's to read, it is RunID
// and NotFound alone.
type RunsGetTraceResult struct {
	RunID    string            `json:"run_id"`
	AgentID  string            `json:"agent_id"`
	Records  []json.RawMessage `json:"records"`
	Cursor   int               `json:"cursor"`           // that of the params
	Next     int               `json:"next"`             // ours: the cursor behind the last of Records
	More     bool              `json:"more,omitempty"`   // ours: there are records from Next on; one reply has at most 32 MiB of them
	Status   string            `json:"status,omitempty"` // ours: where the run stands
	NotFound bool              `json:"not_found,omitempty"`
}

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
