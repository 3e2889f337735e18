package foreign

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A qwenPart is one part of a message.
type qwenPart struct {
	raw          []byte // whole
	text         string
	isText       bool
	thought      bool
	call, answer []byte // functionCall, functionResponse
}

// parts gives the parts of a message to each. Their memory is borrowed until the next.
func (q *qwenReader) parts(message []byte, each func(p *qwenPart) error) error {
	if message == nil {
		return nil
	}
	s := &q.inner
	s.Reset(message)
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "parts" || s.Peek() != '[' {
			s.Skip()
			continue
		}
		for s.Begin('['); s.More(']'); {
			p := qwenPart{}
			p.read(s)
			if s.Err() != nil {
				break
			}
			if err := each(&p); err != nil {
				return err
			}
		}
	}
	if err := s.End(); err != nil {
		return broken{err}
	}
	return nil
}

func (p *qwenPart) read(s *jsonscan.Scanner) {
	s.Peek() // what stands before it is not its own
	from := s.Offset()
	if s.Peek() == '"' {
		p.text, p.isText = s.Text(), true
		return
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "text":
			p.isText = s.Peek() == '"'
			p.text = text(s)
		case "thought":
			p.thought = isTrue(s)
		case "functionCall":
			p.call = s.Raw()
		case "functionResponse":
			p.answer = s.Raw()
		default:
			s.Skip()
		}
	}
	p.raw = s.Since(from)
}

// user is a prompt, or what the program says in the person's name.
func (q *qwenReader) user(l *qwenLine, n int) error {
	switch l.subtype {
	case "", "mid_turn_user_message":
	default:
		q.r.skip("messages in the person's name of type "+l.subtype, "the program said them", n)
		return nil
	}
	var goal []string
	e := &sessionlog.RunStarted{}
	err := q.parts(l.message, func(p *qwenPart) error {
		switch {
		case p.isText && !isReminder(p.text):
			goal = append(goal, p.text)
		case p.raw != nil:
			e.Attachments = append(e.Attachments, owned(p.raw))
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.Goal = strings.Join(goal, "\n")
	return q.chat.ask(e)
}

// isReminder reports whether a text is one that the program puts before a prompt.
func isReminder(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>")
}

// assistant is a turn, or in a sub-agent's file a piece of one.
func (q *qwenReader) assistant(l *qwenLine) error {
	if !l.sidechain {
		if err := q.chat.flush(); err != nil {
			return err
		}
	}
	a, err := q.chat.saying()
	if err != nil {
		return err
	}
	q.chat.reason = ""
	if l.model != "" {
		a.model = l.model
	}
	err = q.parts(l.message, func(p *qwenPart) error {
		switch {
		case p.call != nil:
			a.calls = append(a.calls, qwenCall(p.call))
		case p.thought:
			a.think(p.text, p.raw)
		case p.isText:
			a.say(p.text)
		default:
			a.block(p.raw)
		}
		return nil
	})
	if err == nil {
		a.tokens += qwenTokens(&q.inner, l.usage)
	}
	if err == nil && q.inner.Err() != nil {
		err = broken{q.inner.Err()}
	}
	return err
}

func qwenTokens(s *jsonscan.Scanner, usage []byte) (total int64) {
	if usage == nil || usage[0] != '{' {
		return 0
	}
	s.Reset(usage)
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == "totalTokenCount" {
			total = count(s)
		} else {
			s.Skip()
		}
	}
	return total
}

// qwenCall reads a functionCall, which was stepped over before and so is well formed.
func qwenCall(b []byte) sessionlog.ToolCall {
	c := sessionlog.ToolCall{Arguments: json.RawMessage("{}")}
	var s jsonscan.Scanner
	s.Reset(b)
	if s.Peek() != '{' {
		return c
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			c.ID = text(&s)
		case "name":
			c.Name = text(&s)
		case "args":
			c.Arguments = owned(s.Raw())
		default:
			s.Skip()
		}
	}
	return c
}

// results is what came of one call, or of more in older sessions.
func (q *qwenReader) results(l *qwenLine, n int) error {
	status, call := "", ""
	s := &q.inner
	if l.result != nil && l.result[0] == '{' {
		s.Reset(l.result)
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "status":
				status = text(s)
			case "callId":
				call = text(s)
			default:
				s.Skip()
			}
		}
	}
	some := false
	err := q.parts(l.message, func(p *qwenPart) error {
		if p.answer == nil {
			q.r.skip("parts beside a result", "the result is what the tool gave", n)
			return nil
		}
		some = true
		r := qwenResult(p.answer)
		if r.CallID == "" {
			r.CallID = call
		}
		r.IsError = r.IsError || status == "error" || status == "cancelled"
		return q.chat.result(r)
	})
	if err == nil && !some {
		q.r.skip("results without a result", "unknown", n)
	}
	return err
}

// qwenResult reads a functionResponse: its response is {output} or {error}, anything else as it stands.
func qwenResult(b []byte) sessionlog.ToolResult {
	var r sessionlog.ToolResult
	var s jsonscan.Scanner
	s.Reset(b)
	if s.Peek() != '{' {
		r.Output = owned(b)
		return r
	}
	var extra []byte
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			r.CallID = text(&s)
		case "response":
			r.Output, r.IsError = qwenResponse(s.Raw())
		case "parts":
			extra = s.Raw()
		default:
			s.Skip()
		}
	}
	if r.Output == nil {
		r.Output = sessionlog.Text("")
	}
	if len(extra) > 2 && extra[0] == '[' { // what is no text: images
		r.Output = textAnd(`{"text":`, r.Output, extra)
	}
	return r
}

func qwenResponse(b []byte) (out json.RawMessage, failed bool) {
	if b[0] != '{' {
		return owned(b), false
	}
	var s jsonscan.Scanner
	s.Reset(b)
	n := 0
	for s.Begin('{'); s.More('}'); n++ {
		switch key := string(s.Key()); key {
		case "output", "error":
			out, failed = owned(s.Raw()), key == "error"
		default:
			s.Skip()
		}
	}
	if n != 1 || out == nil {
		return owned(b), failed
	}
	return out, failed
}
