package sessionlog

import (
	"encoding/json"
	"reflect"
)

// An Event is one thing that happened in a session: a pointer to one of the types of this package, *Unknown for a kind that
// it does not know.
type Event interface {
	// Base returns what events of every kind have, which may be changed in place.
	Base() *Common

	object
}

// Common is what events of every kind have. TapeSeq stands behind an event's own keys. A kind whose events may have no turn
// says so by a tag on its Common.
type Common struct {
	Turn int `json:"turn"` // the turn it belongs to, from 1; 0 for none

	// Category and Primitive are what the line carries, which older producers wrote; "" for none. What the taxonomy says is
	// Kind.Category and Kind.Primitive.
	Category  string `json:"category,omitempty"`
	Primitive string `json:"primitive,omitempty"`

	TapeSeq *uint64 `json:"tape_seq,omitempty"` // the seq of the tape's record that it was derived from; nil for none

	Extra []Field // further keys, as they stood

	had had
}

// A Field is a key that this package does not know, with its value as it stood.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Base implements Event.
func (c *Common) Base() *Common { return c }

func (c *Common) kept() (*had, *[]Field) { return &c.had, &c.Extra }

// RunStarted begins a run: what was asked of the agent.
type RunStarted struct {
	Common       `turn:"optional"`
	RunID        string            `json:"run_id"`
	Goal         string            `json:"goal"`     // what was asked, as text
	Criteria     []string          `json:"criteria"` // what the run is held to
	AgentID      string            `json:"agent_id,omitempty"`
	SystemPrompt string            `json:"system_prompt,omitempty"`
	Attachments  []json.RawMessage `json:"attachments"`
}

// A Message is one message of a conversation. Content is a JSON string where it is text alone, else the provider's list of
// blocks.
type Message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []ToolCall      `json:"tool_calls,omitempty"`
	Extra     []Field         `json:"-"` // further keys, as they stood

	had had
}

func (m *Message) kept() (*had, *[]Field) { return &m.had, &m.Extra }

func (m *Message) isZero() bool { return reflect.ValueOf(*m).IsZero() }

// A ToolCall is what a model wants done. Arguments are JSON: an object, or a string where what the model wrote is no JSON.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Extra     []Field         `json:"-"` // further keys, as they stood

	had had
}

func (t *ToolCall) kept() (*had, *[]Field) { return &t.had, &t.Extra }

// A ToolResult is what came of a call. Output is a JSON string where it is text alone, else the list of blocks.
type ToolResult struct {
	CallID     string          `json:"call_id"`
	Output     json.RawMessage `json:"output"`
	IsError    bool            `json:"is_error"`
	IsFatal    *bool           `json:"is_fatal,omitempty"`
	TokenCount *int            `json:"token_count,omitempty"`
	Extra      []Field         `json:"-"` // further keys, as they stood

	had had
}

func (t *ToolResult) kept() (*had, *[]Field) { return &t.had, &t.Extra }

// LLMCompleted is one answer of a model.
type LLMCompleted struct {
	Common
	Message Message `json:"message"`

	// Content, TokenCount and ToolCalls stand in the event itself where a producer writes no message. Said knows both.
	Content    json.RawMessage `json:"content,omitempty"`
	TokenCount int             `json:"token_count,omitempty"`
	ToolCalls  []ToolCall      `json:"tool_calls,omitempty"`

	ProviderReplay json.RawMessage `json:"provider_replay,omitempty"` // what a provider needs to go on; nil for none
}

// Said is the message, wherever its parts stand.
func (e *LLMCompleted) Said() Message {
	if e.Message.isZero() && (e.Content != nil || e.ToolCalls != nil) {
		return Message{Role: "assistant", Content: e.Content, ToolCalls: e.ToolCalls}
	}
	return e.Message
}

// ToolRequested lists the calls of one answer.
type ToolRequested struct {
	Common
	Calls []ToolCall `json:"calls"`
}

// ToolCompleted lists results that came together.
type ToolCompleted struct {
	Common
	Results []ToolResult `json:"results"`
}

// RunTerminal ends a run.
type RunTerminal struct {
	Common      `turn:"optional"`
	Reason      string `json:"reason"` // "completed", "error", "interrupted", …
	TurnsUsed   int    `json:"turns_used"`
	TotalTokens int64  `json:"total_tokens"`
}

// ToolArgumentRepaired says that arguments were no JSON as the model wrote them, and what was made of them.
type ToolArgumentRepaired struct {
	Common
	Tool              string `json:"tool"`
	OriginalArguments string `json:"original_arguments"`
	RepairedArguments string `json:"repaired_arguments"`
}

// PermissionRequested asks whether a tool may run.
type PermissionRequested struct {
	Common
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Reason    string `json:"reason,omitempty"`
}

// PermissionResolved answers that: responder is "user" or "policy_gate".
type PermissionResolved struct {
	Common
	Approved  bool   `json:"approved"`
	Responder string `json:"responder"`
}

// ToolDenied says that a call was not made.
type ToolDenied struct {
	Common
	CallID   string `json:"call_id"`
	ToolName string `json:"tool_name"`
	Reason   string `json:"reason"`
}

// ToolGated says that a call waits for leave.
type ToolGated struct {
	Common
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// CapabilityChanged says what a model can call from here on, and no more.
type CapabilityChanged struct {
	Common
	Added        []string `json:"added"`
	Removed      []string `json:"removed"`
	ChangeKind   string   `json:"change_kind,omitempty"`
	CapabilityID string   `json:"capability_id,omitempty"`
	Version      string   `json:"version,omitempty"`
	MountedBy    string   `json:"mounted_by,omitempty"`
	MountReason  string   `json:"mount_reason,omitempty"`
}

// LargeResultSpooled says that a result was too large for the context, in bytes, and where it lies.
type LargeResultSpooled struct {
	Common
	CallID       string `json:"call_id"`
	Tool         string `json:"tool"`
	OriginalSize int64  `json:"original_size"`
	PreviewSize  int64  `json:"preview_size"`
	SpoolRef     string `json:"spool_ref,omitempty"`
}

// Compressed says that a range of the log left the context.
type Compressed struct {
	Common
	ArchivedSeqRange []uint64 `json:"archived_seq_range"` // [from, to]
	Action           string   `json:"action,omitempty"`
	Summary          string   `json:"summary,omitempty"`
	SummaryTokens    int64    `json:"summary_tokens,omitempty"`
	PreservedRefs    []string `json:"preserved_refs"`
}

// PageOut says that messages left the context for long-term storage.
type PageOut struct {
	Common
	Action       string `json:"action,omitempty"`
	Summary      string `json:"summary,omitempty"`
	TierHint     string `json:"tier_hint,omitempty"`
	MessageCount int64  `json:"message_count"`
	ArchiveRef   string `json:"archive_ref,omitempty"`
}

// PageIn says that entries came back from there.
type PageIn struct {
	Common
	EntryCount int64 `json:"entry_count"`
}

// ContextRenewed says that the context began anew, with what was handed over.
type ContextRenewed struct {
	Common
	Sprint     int64  `json:"sprint"`
	HandoffRef string `json:"handoff_ref"`
}

// MemoryWritten says that an entry was put into long-term memory. Older producers call the record memory_id.
type MemoryWritten struct {
	Common
	RecordID   string          `json:"record_id,omitempty"`
	MemoryID   string          `json:"memory_id,omitempty"`
	Scope      json.RawMessage `json:"scope,omitempty"`
	MemoryKind string          `json:"memory_kind,omitempty"`
	Name       string          `json:"name,omitempty"`
	SizeBytes  int64           `json:"size_bytes,omitempty"`
}

// MemoryQueried says that long-term memory was asked. Older producers call the query query_context.
type MemoryQueried struct {
	Common
	Scope                 json.RawMessage `json:"scope,omitempty"`
	Query                 string          `json:"query,omitempty"`
	QueryContext          string          `json:"query_context,omitempty"`
	RequestedK            int64           `json:"requested_k,omitempty"`
	RequiresAsyncResponse bool            `json:"requires_async_response,omitempty"`
}

// MemoryValidationFailed says that an entry was refused.
type MemoryValidationFailed struct {
	Common
	RecordID string `json:"record_id,omitempty"`
	MemoryID string `json:"memory_id,omitempty"`
	Error    string `json:"error,omitempty"`
}

// MemoryRetrievalResult is what long-term memory gave; retrieval is the form of older producers.
type MemoryRetrievalResult struct {
	Common    `turn:"optional"`
	Hits      json.RawMessage `json:"hits,omitempty"`
	Retrieval json.RawMessage `json:"retrieval,omitempty"`
}

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
