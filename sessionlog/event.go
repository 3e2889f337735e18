package sessionlog

import "encoding/json"

// An Event is one thing that happened in a session: a pointer to one of the types of this package, *Unknown for a kind that
// it does not know.
type Event interface {
	// Kind is the event's kind.
	Kind() Kind
	// Base returns what events of every kind have, which may be changed in place.
	Base() *Common

	walker
}

// Common is what events of every kind have.
type Common struct {
	Turn    int     // the turn it belongs to, from 1; 0 for none
	TapeSeq *uint64 // the seq of the tape's record that it was derived from; nil for none

	// Category and Primitive are what the line carries, which older producers wrote; "" for none. What the taxonomy says is
	// Kind.Category and Kind.Primitive.
	Category  string
	Primitive string

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

// begin walks the keys that stand first, and end those that stand last.
func (c *Common) begin(w *codec, turn need) {
	number(w, "turn", &c.Turn, turn)
	w.text("category", &c.Category, optional)
	w.text("primitive", &c.Primitive, optional)
}

func (c *Common) end(w *codec) { numberOrNone(w, "tape_seq", &c.TapeSeq) }

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

func (e *RunStarted) fields(c *codec) {
	e.begin(c, optional)
	c.text("run_id", &e.RunID, required)
	c.text("goal", &e.Goal, required)
	c.texts("criteria", &e.Criteria, required)
	c.text("agent_id", &e.AgentID, optional)
	c.text("system_prompt", &e.SystemPrompt, optional)
	c.jsons("attachments", &e.Attachments, required)
	e.end(c)
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

func (m *Message) isZero() bool {
	return m.Role == "" && m.Content == nil && m.ToolCalls == nil && m.Extra == nil && m.had == had{}
}

func (m *Message) fields(c *codec) {
	c.text("role", &m.Role, required)
	c.json("content", &m.Content, required)
	objects(c, "tool_calls", &m.ToolCalls, optional)
}

// A ToolCall is what a model wants done. Arguments are JSON: an object, or a string where what the model wrote is no JSON.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Extra     []Field         `json:"-"` // further keys, as they stood

	had had
}

func (t *ToolCall) kept() (*had, *[]Field) { return &t.had, &t.Extra }

func (t *ToolCall) fields(c *codec) {
	c.text("id", &t.ID, required)
	c.text("name", &t.Name, required)
	c.json("arguments", &t.Arguments, required)
}

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

func (t *ToolResult) fields(c *codec) {
	c.text("call_id", &t.CallID, required)
	c.json("output", &t.Output, required)
	c.yes("is_error", &t.IsError, required)
	c.yesOrNone("is_fatal", &t.IsFatal)
	numberOrNone(c, "token_count", &t.TokenCount)
}

// LLMCompleted is one answer of a model.
type LLMCompleted struct {
	Common
	Message        Message
	ProviderReplay json.RawMessage // what a provider needs to go on; nil for none

	// Content, TokenCount and ToolCalls stand in the event itself where a producer writes no message. Said knows both.
	Content    json.RawMessage
	TokenCount int
	ToolCalls  []ToolCall
}

// Kind implements Event.
func (*LLMCompleted) Kind() Kind { return KindLLMCompleted }

func (e *LLMCompleted) fields(c *codec) {
	e.begin(c, required)
	c.object("message", &e.Message, required, e.Message.isZero())
	c.json("content", &e.Content, optional)
	number(c, "token_count", &e.TokenCount, optional)
	objects(c, "tool_calls", &e.ToolCalls, optional)
	c.json("provider_replay", &e.ProviderReplay, optional)
	e.end(c)
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
	Calls []ToolCall
}

// Kind implements Event.
func (*ToolRequested) Kind() Kind { return KindToolRequested }

func (e *ToolRequested) fields(c *codec) {
	e.begin(c, required)
	objects(c, "calls", &e.Calls, required)
	e.end(c)
}

// ToolCompleted lists results that came together.
type ToolCompleted struct {
	Common
	Results []ToolResult
}

// Kind implements Event.
func (*ToolCompleted) Kind() Kind { return KindToolCompleted }

func (e *ToolCompleted) fields(c *codec) {
	e.begin(c, required)
	objects(c, "results", &e.Results, required)
	e.end(c)
}

// RunTerminal ends a run.
type RunTerminal struct {
	Common
	Reason      string // "completed", "error", "interrupted", …
	TurnsUsed   int
	TotalTokens int64
}

// Kind implements Event.
func (*RunTerminal) Kind() Kind { return KindRunTerminal }

func (e *RunTerminal) fields(c *codec) {
	e.begin(c, optional)
	c.text("reason", &e.Reason, required)
	number(c, "turns_used", &e.TurnsUsed, required)
	number(c, "total_tokens", &e.TotalTokens, required)
	e.end(c)
}
