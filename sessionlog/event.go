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
