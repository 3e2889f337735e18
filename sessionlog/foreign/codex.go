package foreign

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// codex reads the rollouts of OpenAI's Codex, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl, packed with zstd or not.
//
// A line is an envelope {timestamp, type, payload}; the payloads of type response_item are the conversation as it goes over the
// wire, in order. Before September 2025 a line was the item itself, and the first one the session's. Before that (the program in
// TypeScript) a file was one object, {session, items}.
//
// An answer is every item of the model's between two of the other side's, or until its tokens are counted: a response is not
// marked otherwise. What the program says in the user's name (environment, rules, warnings) is no prompt.
// A result is an error where the item says so; the exit status of a command stands in its text alone, as the model sees it.
var codex = Importer{name: "codex", looks: looksCodex, read: readCodex,
	wanted: func(name string) bool {
		return strings.HasPrefix(name, "rollout-") && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.zst"))
	},
	suits: func(head []byte) bool { return !codexAgent.Match(head) },
}

// codexObject is how the oldest form begins.
var codexObject = lazyregexp.New(`^\s*\{\s*"session"\s*:\s*\{`)

// codexAgent is how the session of a sub-agent begins: its first line says whose.
var codexAgent = lazyregexp.New(`^[^\n]*"(parent_thread_id"\s*:\s*"|source"\s*:\s*\{\s*"subagent")`)

func looksCodex(_ string, head []byte) bool {
	if codexObject.Match(withoutMark(head)) {
		return true
	}
	type line struct {
		codexLine
		ID    []byte `json:"id"`
		About []byte `json:"instructions|git"`
	}
	n := 0
	return headLines(head, func(l *line) bool {
		n++
		switch l.Kind {
		case "session_meta", "response_item", "turn_context", "event_msg", "compacted":
			return l.Payload != nil
		case "":
			return n == 1 && l.ID != nil && l.About != nil // the session's own line of the form before envelopes
		}
		return false
	})
}

func readCodex(ctx context.Context, conv *conversation) error {
	c := &codexReader{conversation: conv, roles: map[string]string{}}
	head, err := headOf(c.r.File)
	switch {
	case err != nil:
		return err
	case codexObject.Match(withoutMark(head)):
		return eachElement(ctx, c.r, "items", "element", c.about, func(b []byte, n int) error { return cmp.Or(c.item(b, n), c.failed) })
	}
	return c.eachLine(ctx, c.line)
}

// A codexLine is one line.
type codexLine struct {
	Kind    string `json:"type"`
	Payload []byte `json:"payload"`
}

// A codexReader turns the items of a rollout into events.
type codexReader struct {
	*conversation
	system  string
	model   string
	roles   map[string]string // of sub-agents
	records bool              // tokens are counted by response
	total   int64             // tokens of the session, as counted last
}

const codexRepeats = "says again what the conversation's own items say, or is about the program"

var codexKnown = map[string]string{"turn_context": codexRepeats, "world_state": codexRepeats}

// line reads one line of any form but the oldest.
func (c *codexReader) line(b []byte, n int) error {
	var l codexLine
	if err := decode(b, &l); err != nil {
		return err
	}
	if l.Payload == nil {
		if l.Kind == "" || l.Kind == "session_meta" {
			return c.session(b, n)
		}
		return c.item(b, n)
	}
	switch l.Kind {
	case "response_item":
		return c.item(l.Payload, n)
	case "session_meta":
		return c.session(l.Payload, n)
	case "event_msg":
		return c.event(l.Payload, n)
	case "token_usage_record":
		var spent struct {
			Usage codexTokens `json:"usage"`
		}
		c.records = true
		if err := decode(l.Payload, &spent); err != nil {
			return err
		}
		return c.spent(&spent.Usage)
	case "turn_context":
		c.model = textIn(l.Payload, "model")
	case "compacted": // where the history was made shorter
		c.open()
		c.compressed("compacted", textIn(l.Payload, "message"))
		return nil
	}
	c.r.skipKind("lines of type ", l.Kind, codexKnown, n)
	return nil
}

// session reads what a rollout says of itself first. A fork holds that of each ancestor: the first counts.
func (c *codexReader) session(b []byte, n int) error {
	var about struct {
		ID      string `json:"id"`
		Version string `json:"cli_version"`
		Base    []byte `json:"base_instructions"`
		System  string `json:"instructions"`
		Source  []byte `json:"source"`
		From    []byte `json:"history_base|forked_from_id"`
	}
	if err := decode(b, &about); err != nil {
		return err
	}
	if bytes.Contains(about.Source, []byte(`"subagent"`)) {
		c.r.note("this is the session of a sub-agent")
	}
	if about.From != nil && string(about.From) != "null" {
		c.r.note("the session goes on from another one, which is not read")
	}
	system := cmp.Or(textIn(about.Base, "text"), about.System)
	switch {
	case about.ID == "" && about.Version == "" && system == "" && bytes.Contains(b, []byte(`"record_type"`)):
		c.r.skip("lines without a type", "the state of the program", n)
	case about.ID == "" && about.Version == "" && system == "":
		c.r.skip("lines without a type", "unknown", n)
	case c.d != nil:
		c.r.skip("a second line on the session", "the first one counts", n)
	default:
		c.r.Session, c.r.Version, c.system = about.ID, about.Version, system
		c.open()
	}
	return nil
}

// about reads a key of the object that the oldest form is.
func (c *codexReader) about(key string, s *jsonscan.Stream) error {
	if key != "session" {
		return nil
	}
	b := s.Raw()
	if s.Err() != nil {
		return nil
	}
	return c.session(b, 1)
}

// open begins the conversation. Without an id it is called by that in its file's name, the last 36 letters.
func (c *codexReader) open() {
	if c.d != nil {
		return
	}
	id := c.r.Session
	if id == "" {
		name, _, _ := strings.Cut(filepath.Base(c.r.File), ".json")
		if last := name[max(len(name)-36, 0):]; uuid.MatchString(last) {
			id = last
		}
	}
	c.begin(id, "openai-responses")
}

// A codexItem is an item of the conversation, as the Responses API has it.
type codexItem struct {
	Kind      string `json:"type"`
	Role      string `json:"role"`
	ID        string `json:"id"`
	Call      string `json:"call_id"`
	Name      string `json:"name"`
	Content   []byte `json:"content"`
	Arguments []byte `json:"arguments|input"`
	Action    []byte `json:"action|operation"`
	Summary   []byte `json:"summary"`
	Result    []byte `json:"output|tools"`
	Status    string `json:"status"`
	Success   []byte `json:"success"`
	Origin    []byte `json:"internal_chat_message_metadata_passthrough"`
}

func (i *codexItem) failed() bool { return i.Status == "failed" || string(i.Success) == "false" }

const codexMark = "about the program's own work"

var codexMarks = map[string]string{
	"ghost_snapshot": codexMark, "compaction": codexMark, "context_compaction": codexMark, "compaction_trigger": codexMark,
	"configuration_update": codexMark, "compaction_summary": codexMark, "other": codexMark,
}

// item reads one item of the conversation.
func (c *codexReader) item(b []byte, n int) error {
	var i codexItem
	if err := decode(b, &i); err != nil {
		return err
	}
	c.open()
	switch {
	case i.Kind == "message" || i.Kind == "agent_message":
		c.message(&i, n)
	case i.Kind == "reasoning" || strings.HasSuffix(i.Kind, "_call"):
		c.part(&i, b)
	case strings.HasSuffix(i.Kind, "_output") && i.Call != "":
		c.outcome(&i)
	default:
		c.r.skipKind("items of type ", i.Kind, codexMarks, n)
	}
	return nil
}

// part is one of an answer that is no message.
func (c *codexReader) part(i *codexItem, b []byte) {
	a := c.saying()
	a.model = c.model
	switch {
	case i.Kind == "reasoning":
		p := readParts(i.Content)
		if len(p.texts) == 0 {
			p = readParts(i.Summary)
		}
		a.think(p.goal(), b)
	case i.Call == "" && i.Kind != "local_shell_call":
		a.block(b) // the provider's own tools: nobody answers these
	default:
		a.calls = append(a.calls, i.toolCall())
	}
}

// message is a prompt, a part of an answer, or what the program says for itself.
func (c *codexReader) message(i *codexItem, n int) {
	p := readParts(i.Content)
	switch {
	case i.Role == "assistant":
		c.saying().add(p)
		return
	case i.Role != "user":
		c.r.skip("messages of "+i.Role, "instructions of the program beside the system prompt", n)
		return
	case bytes.Contains(i.Origin, []byte(`"provenance":{"type":"harness"`)) || codexOwn(p.goal()):
		c.r.skip("messages of user", "the program's own, in the user's name: environment, rules, warnings", n)
		return
	}
	e := &sessionlog.RunStarted{Goal: p.goal(), Attachments: p.others}
	if !c.prompted {
		e.SystemPrompt = c.system
	}
	c.ask(e)
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
func (i *codexItem) toolCall() sessionlog.ToolCall {
	c := sessionlog.ToolCall{ID: cmp.Or(i.Call, i.ID)}
	c.Name = cmp.Or(i.Name, strings.TrimSuffix(i.Kind, "_call")) // a tool that the protocol has a type for has no name
	switch {
	case i.Kind == "custom_tool_call" && i.Arguments != nil:
		c.Arguments = json.RawMessage(bytes.Clone(i.Arguments)) // words in a grammar of the tool's own
	case i.Arguments != nil:
		c.Arguments = arguments(i.Arguments)
	default:
		c.Arguments = orObject(i.Action)
	}
	return c
}

// outcome is what came of a call: a text, a list of blocks, or {content, success}.
func (c *codexReader) outcome(i *codexItem) {
	result, failed := i.Result, i.failed()
	if len(result) > 0 && result[0] == '{' {
		var inner codexItem
		if err := decode(result, &inner); err == nil && inner.Content != nil {
			result, failed = inner.Content, inner.failed()
		}
	}
	c.result(sessionlog.ToolResult{CallID: i.Call, IsError: failed, Output: output(result)})
}

// A codexEvent is what the program says of its own work. The conversation's items say all of it but the tokens, how a turn ended,
// and what became of sub-agents.
type codexEvent struct {
	Kind string `json:"type"`
	Err  []byte `json:"error"`
	Info struct {
		Total codexTokens `json:"total_token_usage"`
	} `json:"info"`
	codexAgents
	Item codexAgents `json:"item"`
}

type codexTokens struct {
	Total []byte `json:"total_tokens"`
}

// codexAgents is what became of sub-agents: of an item CollabAgentToolCall the states, of older events the one state that each
// has.
type codexAgents struct {
	ID    string     `json:"new_thread_id|receiver_thread_id"`
	Role  string     `json:"new_agent_role"`
	State codexState `json:"status"`
	Roles []struct {
		ID   string `json:"thread_id"`
		Role string `json:"agent_role"`
	} `json:"receiver_agents"`
	States codexStates `json:"agents_states|statuses"`
}

// codexTells are the events of which more than their type is read.
var codexTells = map[string]bool{
	"token_count": true, "turn_aborted": true, "error": true, "task_complete": true, "turn_complete": true, "item_completed": true,
	"collab_agent_spawn_end": true, "collab_close_end": true, "collab_waiting_end": true,
}

func (c *codexReader) event(b []byte, n int) error {
	var kind struct {
		Kind string `json:"type"`
	}
	if err := first(b, &kind); err != nil {
		return err
	}
	item := kind.Kind == "item_completed"
	if !codexTells[kind.Kind] || item && !bytes.Contains(b[:min(len(b), 512)], []byte(`"CollabAgentToolCall"`)) {
		c.r.skip("events of type "+kind.Kind, codexRepeats, n)
		return nil
	}
	var e codexEvent
	if err := decode(b, &e); err != nil {
		return err
	}
	switch e.Kind {
	case "token_count":
		if c.records {
			return nil
		}
		return c.spent(&e.Info.Total)
	case "turn_aborted":
		c.stop(sessionlog.ReasonInterrupted)
	case "item_completed":
		c.agents(&e.Item, false)
	case "error", "task_complete", "turn_complete":
		if e.Kind != "error" && (e.Err == nil || string(e.Err) == "null") {
			c.r.skip("events of type "+e.Kind, codexRepeats, n)
			return nil
		}
		c.r.note("line %d: the program says that a turn failed", n)
		c.stop(sessionlog.ReasonError)
	default:
		c.agents(&e.codexAgents, true)
	}
	return nil
}

// stop ends the run for a reason.
func (c *codexReader) stop(reason string) {
	if c.d != nil {
		c.end(reason)
	}
}

// spent ends an answer by its tokens. Those of the whole session only grow: what is new is spent.
func (c *codexReader) spent(tokens *codexTokens) error {
	if c.d == nil || tokens.Total == nil {
		return nil
	}
	var s jsonscan.Scanner
	s.Reset(tokens.Total)
	n := s.Int()
	if s.Err() != nil {
		return broken{s.Err()}
	}
	if !c.records {
		n, c.total = n-c.total, n
	}
	c.answered()
	c.d.Spend(max(n, 0))
	return nil
}

func (c *codexReader) agents(a *codexAgents, one bool) {
	for _, r := range a.Roles {
		c.roles[r.ID] = r.Role
	}
	list := a.States.list
	if one && a.ID != "" && a.State.word != "" {
		list = append(list, &sessionlog.AgentProcessChanged{AgentID: a.ID, Role: a.Role, State: a.State.word})
	}
	if c.d == nil {
		return
	}
	for _, e := range list {
		e.ParentSessionID = c.r.Session
		e.Role = cmp.Or(e.Role, c.roles[e.AgentID])
		c.roles[e.AgentID] = e.Role
		c.then(e)
	}
}

// codexStates are {id: state}, in the order of the file.
type codexStates struct {
	list []*sessionlog.AgentProcessChanged
}

// ReadJSON implements jsonscan.Value.
func (l *codexStates) ReadJSON(s *jsonscan.Scanner) {
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		e := &sessionlog.AgentProcessChanged{AgentID: string(s.Key())}
		var state codexState
		if state.ReadJSON(s); state.word != "" {
			e.State = state.word
			l.list = append(l.list, e)
		}
	}
}

// A codexState is a state: a word, or {word: what was said}.
type codexState struct{ word string }

// ReadJSON implements jsonscan.Value.
func (c *codexState) ReadJSON(s *jsonscan.Scanner) {
	switch s.Peek() {
	case '"':
		c.word = s.Text()
	case '{':
		for s.Begin('{'); s.More('}'); s.Skip() {
			c.word = string(s.Key())
		}
	default:
		s.Skip()
	}
	switch c.word {
	case "pending_init":
		c.word = agentRunning
	case "completed":
		c.word = agentJoined
	}
}
