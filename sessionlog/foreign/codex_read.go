package foreign

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A codexReader turns the items of a rollout into events.
type codexReader struct {
	r   *Report
	out func(sessionlog.Event) error
	talk
	system string
	model  string
	asked  bool

	inner   jsonscan.Scanner
	roles   map[string]string // of sub-agents
	records bool              // tokens are counted by response
	total   int64             // tokens of the session, as counted last
}

const codexRepeats = "says again what the conversation's own items say, or is about the program"

// line reads one line of any form but the oldest.
func (c *codexReader) line(s *jsonscan.Scanner, n int) error {
	var l codexLine
	at := s.Rest()
	if l.read(s); s.Err() != nil {
		return broken{s.Err()}
	}
	if l.payload == nil {
		if l.kind == "" || l.kind == "session_meta" {
			return c.session(at, n)
		}
		return c.item(at, n)
	}
	switch l.kind {
	case "response_item":
		return c.item(l.payload, n)
	case "session_meta":
		return c.session(l.payload, n)
	case "event_msg":
		return c.event(l.payload, n)
	case "token_usage_record":
		c.records = true
		return c.spent(l.payload, "usage")
	case "turn_context":
		c.inner.Reset(l.payload)
		c.model = textIn(&c.inner, "model")
	case "compacted":
		return c.compacted(l.payload)
	}
	c.r.skip("lines of type "+l.kind, why(codexKnown[l.kind], codexRepeats), n)
	return nil
}

var codexKnown = map[string]bool{"turn_context": true, "world_state": true}

// session reads what a rollout says of itself first. A fork holds that of each ancestor: the first counts.
func (c *codexReader) session(b []byte, n int) error {
	s := &c.inner
	s.Reset(b)
	var id, version, system string
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			id = text(s)
		case "cli_version":
			version = text(s)
		case "base_instructions":
			system = textIn(s, "text")
		case "instructions":
			if other := text(s); system == "" {
				system = other
			}
		case "source":
			if b := s.Raw(); bytes.Contains(b, []byte(`"subagent"`)) {
				c.r.note("this is the session of a sub-agent")
			}
		case "history_base", "forked_from_id":
			if !s.Null() {
				s.Skip()
				c.r.note("the session goes on from another one, which is not read")
			}
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return broken{s.Err()}
	}
	if id == "" && version == "" && system == "" {
		c.r.skip("lines without a type", why(bytes.Contains(b, []byte(`"record_type"`)), "the state of the program"), n)
		return nil
	}
	if c.d != nil {
		c.r.skip("a second line on the session", "the first one counts", n)
		return nil
	}
	c.r.Session, c.r.Version, c.system = id, version, system
	c.begin()
	return nil
}

// about reads a key of the object that the oldest form is.
func (c *codexReader) about(key string, b []byte) error {
	if key == "session" {
		return c.session(b, 1)
	}
	return nil
}

func (c *codexReader) begin() {
	if c.d == nil {
		id := c.r.Session
		if id == "" {
			id = codexID(c.r.File)
		}
		c.start(id, "openai-responses", c.out)
	}
}

// A codexItem is an item of the conversation, as the Responses API has it.
type codexItem struct {
	kind, role, id, call, name          string
	content, arguments, action, summary []byte
	result                              []byte
	failed, harness                     bool
}

func (i *codexItem) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			i.kind = text(s)
		case "role":
			i.role = text(s)
		case "id":
			i.id = text(s)
		case "call_id":
			i.call = text(s)
		case "name":
			i.name = text(s)
		case "content":
			i.content = s.Raw()
		case "arguments", "input":
			i.arguments = s.Raw()
		case "action", "operation":
			i.action = s.Raw()
		case "status":
			i.failed = text(s) == "failed" || i.failed
		case "summary":
			i.summary = s.Raw()
		case "output", "tools":
			i.result = s.Raw()
		case "success":
			i.failed = s.Peek() == 'f' || i.failed
			s.Skip()
		case "internal_chat_message_metadata_passthrough":
			i.harness = bytes.Contains(s.Raw(), []byte(`"provenance":{"type":"harness"`))
		default:
			s.Skip()
		}
	}
	_ = s.End()
}

// item reads one item of the conversation.
func (c *codexReader) item(b []byte, n int) error {
	var i codexItem
	s := &c.inner
	s.Reset(b)
	if i.read(s); s.Err() != nil {
		return broken{s.Err()}
	}
	c.begin()
	switch {
	case i.kind == "message" || i.kind == "agent_message":
		return c.message(&i, n)
	case i.kind == "reasoning" || strings.HasSuffix(i.kind, "_call"):
		return c.part(&i, b)
	case strings.HasSuffix(i.kind, "_output") && i.call != "":
		return c.outcome(&i)
	}
	c.r.skip("items of type "+i.kind, why(codexMarks[i.kind], "about the program's own work"), n)
	return nil
}

var codexMarks = map[string]bool{
	"ghost_snapshot": true, "compaction": true, "context_compaction": true, "compaction_trigger": true, "configuration_update": true,
	"compaction_summary": true, "other": true,
}

// part is one of an answer that is no message.
func (c *codexReader) part(i *codexItem, b []byte) error {
	a, err := c.saying()
	a.model = c.model
	switch {
	case i.kind == "reasoning":
		a.think(codexThought(&c.inner, i), b)
	case i.call == "" && i.kind != "local_shell_call":
		a.block(b) // the provider's own tools: nobody answers these
	default:
		a.calls = append(a.calls, i.toolCall(&c.inner))
	}
	if c.inner.Err() != nil {
		return broken{c.inner.Err()}
	}
	return err
}

// message is a prompt, a part of an answer, or what the program says for itself.
func (c *codexReader) message(i *codexItem, n int) error {
	p := readParts(&c.inner, i.content)
	if err := c.inner.Err(); err != nil {
		return broken{err}
	}
	switch {
	case i.role == "assistant":
		a, err := c.saying()
		a.add(p)
		return err
	case i.role != "user":
		c.r.skip("messages of "+i.role, "instructions of the program beside the system prompt", n)
		return nil
	case i.harness || codexOwn(p.goal()):
		c.r.skip("messages of user", "the program's own, in the user's name: environment, rules, warnings", n)
		return nil
	}
	e := &sessionlog.RunStarted{Goal: p.goal(), Attachments: p.others}
	if !c.asked {
		e.SystemPrompt, c.asked = c.system, true
	}
	return c.ask(e)
}

// codexOwn reports whether a user's message is one that the program writes, by how it begins: older rollouts do not say.
func codexOwn(text string) bool {
	return trimmedPrefix(text,
		"<environment_context>", "<user_instructions>", "<turn_aborted>", "<skill>", "<subagent_notification>", "<permissions instructions>",
		"<user_shell_command>", "<hook_", "<goal_context>", "<INSTRUCTIONS>", "# AGENTS.md instructions",
		"Warning: apply_patch was requested via ", "Warning: Your account was flagged", "Warning: The maximum number of unified exec processes",
	)
}

// toolCall is a call of any kind as an event has it.
func (i *codexItem) toolCall(s *jsonscan.Scanner) sessionlog.ToolCall {
	c := sessionlog.ToolCall{ID: i.call, Name: i.name}
	if c.ID == "" {
		c.ID = i.id
	}
	if c.Name == "" { // a tool that the protocol has a type for
		c.Name = strings.TrimSuffix(i.kind, "_call")
	}
	switch {
	case i.kind == "custom_tool_call":
		c.Arguments = bytes.Clone(i.arguments) // words in a grammar of the tool's own
	case i.arguments != nil:
		c.Arguments = arguments(s, i.arguments)
	default:
		c.Arguments = clone(i.action)
	}
	if c.Arguments == nil {
		c.Arguments = json.RawMessage("{}")
	}
	return c
}

func codexThought(s *jsonscan.Scanner, i *codexItem) string {
	p := readParts(s, i.content)
	if len(p.texts) == 0 {
		p = readParts(s, i.summary)
	}
	return p.goal()
}

// outcome is what came of a call: a text, a list of blocks, or {content, success}.
func (c *codexReader) outcome(i *codexItem) error {
	r := sessionlog.ToolResult{CallID: i.call, IsError: i.failed, Output: output(&c.inner, i.result)}
	if err := c.inner.Err(); err != nil {
		return broken{err}
	}
	if i.result != nil && i.result[0] == '{' {
		var inner codexItem
		c.inner.Reset(i.result)
		if inner.read(&c.inner); c.inner.Err() == nil && inner.content != nil {
			r.Output, r.IsError = output(&c.inner, inner.content), inner.failed
		}
	}
	return c.result(r)
}

func (c *codexReader) finish() error {
	if c.d == nil {
		return &Error{Path: c.r.File, Err: ErrEmpty}
	}
	return c.end("")
}
