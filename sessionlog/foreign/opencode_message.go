package foreign

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// isCut reports whether input ended too early.
func isCut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// opencodeInfo is what opencode says of a session.
type opencodeInfo struct {
	id, parent, version string
	updated             int64  // ms since 1970
	revert              string // the first message that the person took back, "" for none
}

func readOpencodeInfo(b []byte) (opencodeInfo, error) {
	var i opencodeInfo
	var s jsonscan.Scanner
	s.Reset(b)
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			i.id = text(&s)
		case "parentID":
			i.parent = text(&s)
		case "version":
			i.version = text(&s)
		case "revert":
			i.revert = textIn(&s, "messageID")
		case "time":
			i.updated = numberIn(&s, "updated")
		default:
			s.Skip()
		}
	}
	return i, s.End()
}

// numberIn reads an object and returns the number under a key of it, 0 for none.
func numberIn(s *jsonscan.Scanner, key string) (n int64) {
	if s.Peek() != '{' {
		s.Skip()
		return 0
	}
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == key {
			n = count(s)
		} else {
			s.Skip()
		}
	}
	return n
}

// An opencodeReader turns messages and their parts into events. A message is begun by message, gets its parts by part, and is
// ended by messageEnd.
type opencodeReader struct {
	r      *Report
	emit   func(sessionlog.Event) error
	chat   *chat
	revert string
	undone bool   // the messages from here on were taken back
	id     string // of the message, where it does not say so itself
	now    opencodeMessage
	inner  jsonscan.Scanner
}

// An opencodeMessage is the message under way.
type opencodeMessage struct {
	id, role, model, provider string
	reason                    string // why the run ends, where the message is its last
	tokens                    int64

	goal        []string // of a prompt
	attachments []json.RawMessage
	program     bool // the program said something in the person's name

	step    answer
	some    bool // the step has begun
	steps   int
	results []sessionlog.ToolResult
	agents  []sessionlog.Event // what became of sub-agents

	summary bool // of what was said so far, no answer
}

func (o *opencodeReader) session(b []byte) error {
	info, err := readOpencodeInfo(b)
	if err != nil {
		return broken{err}
	}
	o.begin(&info)
	return nil
}

func (o *opencodeReader) begin(info *opencodeInfo) {
	if o.chat != nil {
		return
	}
	o.r.Session, o.r.Version, o.revert = info.id, info.version, info.revert
	if info.parent != "" {
		o.r.note("this is what a sub-agent of %s did", info.parent)
	}
	o.chat = newChat(o.r, info.id, "opencode", o.emit)
}

// message begins a message. more is false where its parts do not count.
func (o *opencodeReader) message(b []byte) (more bool, err error) {
	s := &o.inner
	m := opencodeMessage{id: o.id}
	if b == nil {
		return false, broken{errors.New(`expected a message's "info"`)}
	}
	s.Reset(b)
	completed := false
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			m.id = text(s)
		case "role":
			m.role = text(s)
		case "modelID":
			m.model = text(s)
		case "providerID":
			m.provider = text(s)
		case "tokens":
			m.tokens = opencodeTokens(s)
		case "summary":
			m.summary = isTrue(s)
		case "error":
			if m.reason = sessionlog.ReasonError; textIn(s, "name") == "MessageAbortedError" {
				m.reason = sessionlog.ReasonInterrupted
			}
		case "time":
			completed = numberIn(s, "completed") > 0
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return false, broken{err}
	}
	if o.chat == nil {
		o.begin(&opencodeInfo{})
	}
	if o.undone = o.undone || o.revert != "" && m.id == o.revert; o.undone {
		o.r.skip("messages that the person took back", "the conversation went on without them", 0)
		return false, nil
	}
	switch {
	case m.role != "assistant" && m.role != "user":
		o.r.skip("messages of "+m.role, "unknown", 0)
		return false, nil
	case m.role == "assistant" && m.reason == "" && !completed:
		m.reason = sessionlog.ReasonInterrupted
	}
	o.now = m
	return true, nil
}

// opencodeTokens reads tokens: the total, or the sum of its parts where there is none.
func opencodeTokens(s *jsonscan.Scanner) int64 {
	if s.Peek() != '{' {
		s.Skip()
		return 0
	}
	var total, sum int64
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "total":
			total = count(s)
		case "input", "output", "reasoning":
			sum += count(s)
		case "cache":
			at := s.Mark()
			sum += numberIn(s, "read")
			s.Back(at)
			sum += numberIn(s, "write")
		default:
			s.Skip()
		}
	}
	if total > 0 {
		return total
	}
	return sum
}

// messageEnd ends a message: a prompt, or the last step of an answer.
func (o *opencodeReader) messageEnd() error {
	m := &o.now
	if m.role == "user" {
		if m.program && len(m.goal) == 0 && len(m.attachments) == 0 {
			o.r.skip("messages in the person's name", "the program said them", 0)
			return nil
		}
		return o.chat.ask(&sessionlog.RunStarted{Goal: strings.Join(m.goal, "\n"), Attachments: m.attachments})
	}
	if m.summary {
		return o.chat.compressed("compaction", strings.Join(m.step.texts, "\n"))
	}
	if err := o.step(m.steps == 0); err != nil {
		return err
	}
	o.chat.reason = m.reason
	return nil
}

// step ends a step, and begins another one. An answer of which nothing came counts where all is true.
func (o *opencodeReader) step(all bool) error {
	m := &o.now
	if m.summary || !m.some && !all {
		return nil
	}
	if m.steps++; m.step.tokens == 0 && m.steps == 1 {
		m.step.tokens = m.tokens
	}
	a, results, agents := m.step, m.results, m.agents
	a.model = m.model
	m.step, m.results, m.agents, m.some = answer{}, nil, nil, false
	if err := o.chat.turn(&a, ""); err != nil {
		return err
	}
	for _, r := range results {
		if err := o.chat.result(r); err != nil {
			return err
		}
	}
	for _, e := range agents {
		o.chat.then(e)
	}
	return nil
}

// An opencodePart is one part of a message.
type opencodePart struct {
	kind, text, call, tool string
	synthetic, ignored     bool
	tokens                 int64
	state                  []byte
}

func (p *opencodePart) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			p.kind = text(s)
		case "text":
			p.text = text(s)
		case "callID":
			p.call = text(s)
		case "tool":
			p.tool = text(s)
		case "synthetic":
			p.synthetic = isTrue(s)
		case "ignored":
			p.ignored = isTrue(s)
		case "tokens":
			p.tokens = opencodeTokens(s)
		case "state":
			p.state = s.Raw()
		default:
			s.Skip()
		}
	}
	_ = s.End()
}

// part adds a part to the message under way.
func (o *opencodeReader) part(b []byte) error {
	s := &o.inner
	var p opencodePart
	s.Reset(b)
	if p.read(s); s.Err() != nil {
		return broken{s.Err()}
	}
	if o.now.role == "user" {
		o.said(&p, b)
		return nil
	}
	m := &o.now
	switch p.kind {
	case "step-start":
		return o.step(false)
	case "step-finish":
		m.step.tokens += p.tokens
		return o.step(false)
	case "text":
		m.some = true
		m.step.say(p.text)
	case "reasoning":
		m.some = true
		m.step.think(p.text, owned(b))
	case "tool":
		m.some = true
		return o.tool(&p)
	case "file":
		m.some = true
		m.step.block(owned(b))
	default:
		reason, ok := opencodeParts[p.kind]
		o.r.skip("parts of type "+p.kind, why(ok, reason), 0)
	}
	return nil
}

var opencodeParts = map[string]string{
	"snapshot": "the state of the work tree", "patch": "the state of the work tree", "retry": "a request that was made again",
	"compaction": "a mark where a summary was made", "agent": "a name that the person gave; the prompt holds it",
}

// said adds a part of a prompt.
func (o *opencodeReader) said(p *opencodePart, b []byte) {
	m := &o.now
	switch {
	case p.ignored:
		o.r.skip("texts that the model does not get", "no part of the conversation", 0)
	case p.kind == "text" && p.synthetic:
		m.program = true
		o.r.skip("texts in the person's name", "the program said them", 0)
	case p.kind == "text":
		m.goal = append(m.goal, p.text)
	case p.kind == "file" || p.kind == "subtask":
		m.attachments = append(m.attachments, owned(b))
	default:
		m.program = true
		reason, ok := opencodeParts[p.kind]
		o.r.skip("parts of type "+p.kind, why(ok, reason), 0)
	}
}

// opencodeAgents are the states of sub-agents by the status of the call that began them.
var opencodeAgents = map[string]string{"pending": agentRunning, "running": agentRunning, "completed": agentJoined, "error": "failed"}

// tool adds a call, and what came of it.
func (o *opencodeReader) tool(p *opencodePart) error {
	call := sessionlog.ToolCall{ID: p.call, Name: p.tool, Arguments: json.RawMessage("{}")}
	result := sessionlog.ToolResult{CallID: p.call}
	status, agent := "", ""
	var files []byte
	s := &o.inner
	s.Reset(p.state)
	if p.state != nil {
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "status":
				status = text(s)
			case "input":
				call.Arguments = owned(s.Raw())
			case "output":
				result.Output = owned(s.Raw())
			case "error":
				result.IsError = true
				result.Output = owned(s.Raw())
			case "attachments":
				files = s.Raw()
			case "metadata":
				agent = textIn(s, "sessionId")
			default:
				s.Skip()
			}
		}
		if s.Err() != nil {
			return broken{s.Err()}
		}
	}
	o.now.step.calls = append(o.now.step.calls, call)
	if p.tool == "task" && agent != "" {
		s.Reset(call.Arguments)
		o.now.agents = append(o.now.agents, &sessionlog.AgentProcessChanged{
			AgentID: agent, ParentSessionID: o.r.Session, Role: textIn(s, "subagent_type"), State: opencodeAgents[status],
		})
	}
	if status != "completed" && status != "error" {
		return nil // it never ended
	}
	if result.Output == nil {
		result.Output = sessionlog.Text("")
	}
	if len(files) > 2 && files[0] == '[' {
		result.Output = textAnd(`{"type":"text","text":`, result.Output, files)
	}
	o.now.results = append(o.now.results, result)
	return nil
}
