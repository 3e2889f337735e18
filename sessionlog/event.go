package sessionlog

import "encoding/json"

// A Kind is the value of an event's key "kind".
type Kind string

// The kinds that a conversation is made of.
const (
	KindRunStarted    Kind = "run_started"
	KindLLMCompleted  Kind = "llm_completed"
	KindToolRequested Kind = "tool_requested"
	KindToolCompleted Kind = "tool_completed"
	KindRunTerminal   Kind = "run_terminal"
)

// An Event is one thing that happened in a session: a pointer to one of the types of this package, *Unknown for a kind that
// it does not know.
type Event interface {
	// Kind is the event's kind.
	Kind() Kind
	// Base returns what events of every kind have, which may be changed in place.
	Base() *Common
}

// Common is what events of every kind have.
type Common struct {
	Turn    int     // the turn it belongs to, from 1; 0 for none
	TapeSeq *uint64 // the seq of the tape's record that it was derived from; nil for none
}

// Base implements Event.
func (c *Common) Base() *Common { return c }

// RunStarted begins a run: what was asked of the agent.
type RunStarted struct {
	Common
	RunID        string
	Goal         string   // what was asked, as text
	Criteria     []string // what the run is held to
	AgentID      string
	SystemPrompt string
	Attachments  []json.RawMessage
}

// Kind implements Event.
func (*RunStarted) Kind() Kind { return KindRunStarted }

// A Message is one message of a conversation. Content is a JSON string where it is text alone, else the provider's list of
// blocks.
type Message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []ToolCall      `json:"tool_calls,omitempty"`
}

// A ToolCall is what a model wants done. Arguments are JSON: an object, or a string where what the model wrote is no JSON.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A ToolResult is what came of a call. Output is a JSON string where it is text alone, else the list of blocks.
type ToolResult struct {
	CallID     string          `json:"call_id"`
	Output     json.RawMessage `json:"output"`
	IsError    bool            `json:"is_error"`
	IsFatal    *bool           `json:"is_fatal,omitempty"`
	TokenCount *int            `json:"token_count,omitempty"`
}

// LLMCompleted is one answer of a model.
type LLMCompleted struct {
	Common
	Message        Message
	ProviderReplay json.RawMessage // what a provider needs to go on; nil for none
}

// Kind implements Event.
func (*LLMCompleted) Kind() Kind { return KindLLMCompleted }

// ToolRequested lists the calls of one answer.
type ToolRequested struct {
	Common
	Calls []ToolCall
}

// Kind implements Event.
func (*ToolRequested) Kind() Kind { return KindToolRequested }

// ToolCompleted lists results that came together.
type ToolCompleted struct {
	Common
	Results []ToolResult
}

// Kind implements Event.
func (*ToolCompleted) Kind() Kind { return KindToolCompleted }

// RunTerminal ends a run.
type RunTerminal struct {
	Common
	Reason      string // "completed", "error", "interrupted", …
	TurnsUsed   int
	TotalTokens int64
}

// Kind implements Event.
func (*RunTerminal) Kind() Kind { return KindRunTerminal }
