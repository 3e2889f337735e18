package sessionlog

import "encoding/json"

// Suspended says that the run waits, and for which calls.
type Suspended struct {
	Common
	Reason       string   `json:"reason"`
	PendingCalls []string `json:"pending_calls"`
}

// Resumed says that it goes on, and with which calls.
type Resumed struct {
	Common
	Approved []string `json:"approved"`
	Denied   []string `json:"denied"`
}

// SignalDisposed says what became of a signal. Newer producers write SignalDeliveryDisposed.
type SignalDisposed struct {
	Common
	SignalID    string `json:"signal_id"`
	Disposition string `json:"disposition"`
	QueueDepth  int64  `json:"queue_depth"`
}

// SignalDeliveryDisposed says what became of one delivery of a signal.
type SignalDeliveryDisposed struct {
	Common
	OperationID string `json:"operation_id"`
	DeliveryID  string `json:"delivery_id"`
	Attempt     int64  `json:"attempt"`
	SignalID    string `json:"signal_id"`
	Disposition string `json:"disposition"`
	QueueDepth  int64  `json:"queue_depth"`
}

// BudgetExceeded says which budget ran out.
type BudgetExceeded struct {
	Common
	Budget        string `json:"budget"`
	OperationID   string `json:"operation_id,omitempty"`
	ReservationID string `json:"reservation_id,omitempty"`
}

// BudgetUsageReported says what of a reserved budget was used.
type BudgetUsageReported struct {
	Common
	OperationID   string `json:"operation_id"`
	ReservationID string `json:"reservation_id"`
	Tokens        int64  `json:"tokens"`
	Subagents     int64  `json:"subagents"`
	Rounds        int64  `json:"rounds"`
}

// OperationCancelled says what was cancelled: reason is "user", "deadline", "lease_lost" or "host_shutdown".
type OperationCancelled struct {
	Common
	OperationID    string   `json:"operation_id"`
	Reason         string   `json:"reason"`
	PendingCallIDs []string `json:"pending_call_ids"`
}

// CheckpointTaken says that a state was kept, and how many messages it has.
type CheckpointTaken struct {
	Common
	HistoryLen int64 `json:"history_len"`
}

// Rollbacked says that the state went back to a checkpoint.
type Rollbacked struct {
	Common
	CheckpointHistoryLen int64           `json:"checkpoint_history_len"`
	Reason               *RollbackReason `json:"reason,omitempty"`
}

// AgentProcessChanged says what a sub-agent came to. Newer producers name its parent task.
type AgentProcessChanged struct {
	Common
	AgentID                string   `json:"agent_id"`
	ParentSessionID        string   `json:"parent_session_id"`
	Role                   string   `json:"role"`
	Isolation              string   `json:"isolation"`
	ContextInheritance     string   `json:"context_inheritance"`
	State                  string   `json:"state"`
	PermittedCapabilityIDs []string `json:"permitted_capability_ids"`
	ResultTermination      string   `json:"result_termination,omitempty"`
	ParentTaskID           string   `json:"parent_task_id,omitempty"`
}

// MilestoneAdvanced says that a phase was passed.
type MilestoneAdvanced struct {
	Common
	PhaseID              string   `json:"phase_id"`
	CapabilitiesUnlocked []string `json:"capabilities_unlocked"`
}

// MilestoneBlocked says that a phase was not passed.
type MilestoneBlocked struct {
	Common
	PhaseID string `json:"phase_id"`
	Reason  string `json:"reason"`
}

// MilestoneEvidence is what a phase was judged by, in its further keys.
type MilestoneEvidence struct {
	Common
	PhaseID string `json:"phase_id"`
}

// EntropySample measures how a session drifts. Its fractions are kept digit by digit.
type EntropySample struct {
	Common
	Score             json.Number `json:"score"`
	ScoreVersion      int64       `json:"score_version,omitempty"`
	Rho               json.Number `json:"rho,omitempty"`
	RepeatPressure    json.Number `json:"repeat_pressure,omitempty"`
	FailureRate       json.Number `json:"failure_rate,omitempty"`
	RollbacksInWindow int64       `json:"rollbacks_in_window,omitempty"`
	WindowTurns       int64       `json:"window_turns,omitempty"`
}

// EntropyAlert says that a score went over its threshold.
type EntropyAlert struct {
	Common
	Score     json.Number `json:"score"`
	Threshold json.Number `json:"threshold,omitempty"`
}

// A RollbackReason is tagged by its kind: "fatal_tool_error", "governance_denied", "provider_failure", "timeout",
// "user_interrupt" or "malformed_replay". The other fields are those of some of them.
type RollbackReason struct {
	Kind     string  `json:"kind"`
	ToolName string  `json:"tool_name,omitempty"`
	Error    string  `json:"error,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	Extra    []Field // further keys, as they stood

	had had
}

func (r *RollbackReason) kept() (*had, *[]Field) { return &r.had, &r.Extra }
