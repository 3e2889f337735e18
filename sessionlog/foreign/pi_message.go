package foreign

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A piMessage is the message of an entry.
type piMessage struct {
	role, call, model, api, stop string
	content                      []byte
	failed, hidden, fault        bool
	tokens                       int64
}

func (m *piMessage) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "role":
			m.role = text(s)
		case "content":
			m.content = s.Raw()
		case "toolCallId":
			m.call = text(s)
		case "isError":
			m.failed = isTrue(s)
		case "excludeFromContext":
			m.hidden = isTrue(s)
		case "model":
			m.model = text(s)
		case "api":
			m.api = text(s)
		case "stopReason":
			m.stop = text(s)
		case "errorMessage":
			m.fault = true
			s.Skip()
		case "usage":
			m.tokens = piTokens(s)
		default:
			s.Skip()
		}
	}
	_ = s.End()
}

// piTokens reads a usage: the total, or the sum of its parts in sessions that have none.
func piTokens(s *jsonscan.Scanner) int64 {
	if s.Peek() != '{' {
		s.Skip()
		return 0
	}
	var total, sum int64
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "totalTokens":
			total = count(s)
		case "input", "output", "cacheRead", "cacheWrite":
			sum += count(s)
		default:
			s.Skip()
		}
	}
	if total > 0 {
		return total
	}
	return sum
}

func (p *piReader) message(b []byte, n int) error {
	s := &p.inner
	var m piMessage
	if b == nil {
		p.r.skip("messages without a message", "unknown", n)
		return nil
	}
	s.Reset(b)
	if m.read(s); s.Err() != nil {
		return broken{s.Err()}
	}
	switch m.role {
	case "user":
		return p.ask(&m)
	case "assistant":
		return p.answer(&m, n)
	case "toolResult":
		out := output(s, m.content)
		if s.Err() != nil {
			return broken{s.Err()}
		}
		return p.chat.result(sessionlog.ToolResult{CallID: m.call, Output: out, IsError: m.failed})
	case "bashExecution", "custom", "hookMessage", "branchSummary":
		if m.hidden {
			p.r.skip("commands of the person's that the model does not see", "no part of the conversation", n)
			return nil
		}
		p.chat.with(owned(b))
	default:
		p.r.skip("messages of "+m.role, "unknown", n)
	}
	return nil
}

func (p *piReader) ask(m *piMessage) error {
	said := readParts(&p.inner, m.content)
	if err := p.inner.Err(); err != nil {
		return broken{err}
	}
	return p.chat.ask(&sessionlog.RunStarted{Goal: said.goal(), Attachments: said.others})
}

// answer is one turn. Thoughts, texts and calls stand in it in the order in which the model gave them.
func (p *piReader) answer(m *piMessage, n int) error {
	s := &p.inner
	a := answer{model: m.model, tokens: m.tokens}
	s.Reset(m.content)
	if m.content != nil && m.content[0] == '"' {
		a.say(s.Text())
	} else if m.content != nil {
		for s.Begin('['); s.More(']'); {
			p.block(s, &a)
		}
	}
	if err := s.End(); m.content != nil && err != nil {
		return broken{err}
	}
	if m.fault {
		p.r.skip("what an answer failed with", "the run's end tells that it failed, not how", n)
	}
	if m.api != "" {
		p.chat.protocol = m.api
	}
	return p.chat.turn(&a, piReasons[m.stop])
}

// piReasons are why a run ends whose last answer stopped so.
var piReasons = map[string]string{"error": sessionlog.ReasonError, "aborted": sessionlog.ReasonInterrupted}

func (p *piReader) block(s *jsonscan.Scanner, a *answer) {
	from := s.Offset()
	var kind, said string
	call := sessionlog.ToolCall{Arguments: json.RawMessage("{}")}
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			kind = text(s)
		case "text", "thinking":
			said = text(s)
		case "id":
			call.ID = text(s)
		case "name":
			call.Name = text(s)
		case "arguments":
			call.Arguments = owned(s.Raw())
		default:
			s.Skip()
		}
	}
	if s.Err() != nil {
		return
	}
	switch kind {
	case "text":
		a.say(said)
	case "thinking":
		a.think(said, bytes.TrimLeft(s.Since(from), ", \t\r\n"))
	case "toolCall":
		a.calls = append(a.calls, call)
	default:
		a.block(bytes.TrimLeft(s.Since(from), ", \t\r\n"))
	}
}
