package sessionlog

import "encoding/json"

// Suspended says that the run waits, and for which calls.
type Suspended struct {
	Common
	Reason       string
	PendingCalls []string
}

// Kind implements Event.
func (*Suspended) Kind() Kind { return KindSuspended }

func (e *Suspended) fields(c *codec) {
	e.begin(c, required)
	c.text("reason", &e.Reason, required)
	c.texts("pending_calls", &e.PendingCalls, required)
	e.end(c)
}

// Resumed says that it goes on, and with which calls.
type Resumed struct {
	Common
	Approved []string
	Denied   []string
}

// Kind implements Event.
func (*Resumed) Kind() Kind { return KindResumed }

func (e *Resumed) fields(c *codec) {
	e.begin(c, required)
	c.texts("approved", &e.Approved, required)
	c.texts("denied", &e.Denied, required)
	e.end(c)
}

// SignalDisposed says what became of a signal. Newer producers write SignalDeliveryDisposed.
type SignalDisposed struct {
	Common
	SignalID    string
	Disposition string
	QueueDepth  int64
}

// Kind implements Event.
func (*SignalDisposed) Kind() Kind { return KindSignalDisposed }

func (e *SignalDisposed) fields(c *codec) {
	e.begin(c, required)
	c.text("signal_id", &e.SignalID, required)
	c.text("disposition", &e.Disposition, required)
	number(c, "queue_depth", &e.QueueDepth, required)
	e.end(c)
}

// SignalDeliveryDisposed says what became of one delivery of a signal.
type SignalDeliveryDisposed struct {
	Common
	OperationID string
	DeliveryID  string
	Attempt     int64
	SignalID    string
	Disposition string
	QueueDepth  int64
}

// Kind implements Event.
func (*SignalDeliveryDisposed) Kind() Kind { return KindSignalDeliveryDisposed }

func (e *SignalDeliveryDisposed) fields(c *codec) {
	e.begin(c, required)
	c.text("operation_id", &e.OperationID, required)
	c.text("delivery_id", &e.DeliveryID, required)
	number(c, "attempt", &e.Attempt, required)
	c.text("signal_id", &e.SignalID, required)
	c.text("disposition", &e.Disposition, required)
	number(c, "queue_depth", &e.QueueDepth, required)
	e.end(c)
}

// BudgetExceeded says which budget ran out.
type BudgetExceeded struct {
	Common
	Budget        string
	OperationID   string
	ReservationID string
}

// Kind implements Event.
func (*BudgetExceeded) Kind() Kind { return KindBudgetExceeded }

func (e *BudgetExceeded) fields(c *codec) {
	e.begin(c, required)
	c.text("budget", &e.Budget, required)
	c.text("operation_id", &e.OperationID, optional)
	c.text("reservation_id", &e.ReservationID, optional)
	e.end(c)
}

// BudgetUsageReported says what of a reserved budget was used.
type BudgetUsageReported struct {
	Common
	OperationID   string
	ReservationID string
	Tokens        int64
	Subagents     int64
	Rounds        int64
}

// Kind implements Event.
func (*BudgetUsageReported) Kind() Kind { return KindBudgetUsageReported }

func (e *BudgetUsageReported) fields(c *codec) {
	e.begin(c, required)
	c.text("operation_id", &e.OperationID, required)
	c.text("reservation_id", &e.ReservationID, required)
	number(c, "tokens", &e.Tokens, required)
	number(c, "subagents", &e.Subagents, required)
	number(c, "rounds", &e.Rounds, required)
	e.end(c)
}

// OperationCancelled says what was cancelled: reason is "user", "deadline", "lease_lost" or "host_shutdown".
type OperationCancelled struct {
	Common
	OperationID    string
	Reason         string
	PendingCallIDs []string
}

// Kind implements Event.
func (*OperationCancelled) Kind() Kind { return KindOperationCancelled }

func (e *OperationCancelled) fields(c *codec) {
	e.begin(c, required)
	c.text("operation_id", &e.OperationID, required)
	c.text("reason", &e.Reason, required)
	c.texts("pending_call_ids", &e.PendingCallIDs, required)
	e.end(c)
}

// CheckpointTaken says that a state was kept, and how many messages it has.
type CheckpointTaken struct {
	Common
	HistoryLen int64
}

// Kind implements Event.
func (*CheckpointTaken) Kind() Kind { return KindCheckpointTaken }

func (e *CheckpointTaken) fields(c *codec) {
	e.begin(c, required)
	number(c, "history_len", &e.HistoryLen, required)
	e.end(c)
}

// Rollbacked says that the state went back to a checkpoint.
type Rollbacked struct {
	Common
	CheckpointHistoryLen int64
	Reason               *RollbackReason
}

// Kind implements Event.
func (*Rollbacked) Kind() Kind { return KindRollbacked }

func (e *Rollbacked) fields(c *codec) {
	e.begin(c, required)
	number(c, "checkpoint_history_len", &e.CheckpointHistoryLen, required)
	c.reason("reason", &e.Reason)
	e.end(c)
}

// AgentProcessChanged says what a sub-agent came to. Newer producers name its parent task.
type AgentProcessChanged struct {
	Common
	AgentID                string
	ParentSessionID        string
	Role                   string
	Isolation              string
	ContextInheritance     string
	State                  string
	PermittedCapabilityIDs []string
	ResultTermination      string
	ParentTaskID           string
}

// Kind implements Event.
func (*AgentProcessChanged) Kind() Kind { return KindAgentProcessChanged }

func (e *AgentProcessChanged) fields(c *codec) {
	e.begin(c, required)
	c.text("agent_id", &e.AgentID, required)
	c.text("parent_session_id", &e.ParentSessionID, required)
	c.text("role", &e.Role, required)
	c.text("isolation", &e.Isolation, required)
	c.text("context_inheritance", &e.ContextInheritance, required)
	c.text("state", &e.State, required)
	c.texts("permitted_capability_ids", &e.PermittedCapabilityIDs, required)
	c.text("result_termination", &e.ResultTermination, optional)
	c.text("parent_task_id", &e.ParentTaskID, optional)
	e.end(c)
}

// MilestoneAdvanced says that a phase was passed.
type MilestoneAdvanced struct {
	Common
	PhaseID              string
	CapabilitiesUnlocked []string
}

// Kind implements Event.
func (*MilestoneAdvanced) Kind() Kind { return KindMilestoneAdvanced }

func (e *MilestoneAdvanced) fields(c *codec) {
	e.begin(c, required)
	c.text("phase_id", &e.PhaseID, required)
	c.texts("capabilities_unlocked", &e.CapabilitiesUnlocked, required)
	e.end(c)
}

// MilestoneBlocked says that a phase was not passed.
type MilestoneBlocked struct {
	Common
	PhaseID string
	Reason  string
}

// Kind implements Event.
func (*MilestoneBlocked) Kind() Kind { return KindMilestoneBlocked }

func (e *MilestoneBlocked) fields(c *codec) {
	e.begin(c, required)
	c.text("phase_id", &e.PhaseID, required)
	c.text("reason", &e.Reason, required)
	e.end(c)
}

// MilestoneEvidence is what a phase was judged by, in its further keys.
type MilestoneEvidence struct {
	Common
	PhaseID string
}

// Kind implements Event.
func (*MilestoneEvidence) Kind() Kind { return KindMilestoneEvidence }

func (e *MilestoneEvidence) fields(c *codec) {
	e.begin(c, required)
	c.text("phase_id", &e.PhaseID, required)
	e.end(c)
}

// EntropySample measures how a session drifts. Its fractions are kept digit by digit.
type EntropySample struct {
	Common
	Score             json.Number
	ScoreVersion      int64
	Rho               json.Number
	RepeatPressure    json.Number
	FailureRate       json.Number
	RollbacksInWindow int64
	WindowTurns       int64
}

// Kind implements Event.
func (*EntropySample) Kind() Kind { return KindEntropySample }

func (e *EntropySample) fields(c *codec) {
	e.begin(c, required)
	c.exact("score", &e.Score, required)
	number(c, "score_version", &e.ScoreVersion, optional)
	c.exact("rho", &e.Rho, optional)
	c.exact("repeat_pressure", &e.RepeatPressure, optional)
	c.exact("failure_rate", &e.FailureRate, optional)
	number(c, "rollbacks_in_window", &e.RollbacksInWindow, optional)
	number(c, "window_turns", &e.WindowTurns, optional)
	e.end(c)
}

// EntropyAlert says that a score went over its threshold.
type EntropyAlert struct {
	Common
	Score     json.Number
	Threshold json.Number
}

// Kind implements Event.
func (*EntropyAlert) Kind() Kind { return KindEntropyAlert }

func (e *EntropyAlert) fields(c *codec) {
	e.begin(c, required)
	c.exact("score", &e.Score, required)
	c.exact("threshold", &e.Threshold, optional)
	e.end(c)
}

// A RollbackReason is tagged by its kind: "fatal_tool_error", "governance_denied", "provider_failure", "timeout",
// "user_interrupt" or "malformed_replay". The other fields are those of some of them.
type RollbackReason struct {
	Kind     string
	ToolName string
	Error    string
	Reason   string
	Extra    []Field // further keys, as they stood

	had had
}

func (r *RollbackReason) kept() (*had, *[]Field) { return &r.had, &r.Extra }

func (r *RollbackReason) fields(c *codec) {
	c.text("kind", &r.Kind, required)
	c.text("tool_name", &r.ToolName, optional)
	c.text("error", &r.Error, optional)
	c.text("reason", &r.Reason, optional)
}

func (c *codec) reason(name string, p **RollbackReason) {
	if !c.take(name, optional, *p == nil) {
		return
	}
	if c.mode == finding {
		*p = new(RollbackReason)
		readObject(c.s, *p)
		return
	}
	c.buf = appendObject(c.buf, *p, c.err)
}
