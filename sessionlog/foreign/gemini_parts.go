package foreign

import (
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// geminiParts is a content: texts and other blocks, thoughts, calls and results.
type geminiParts struct {
	parts
	thoughts []string
	calls    []sessionlog.ToolCall
	results  []sessionlog.ToolResult
	names    []string // of the tools, one a result
	failed   error
}

// A geminiPart is one part of a content.
type geminiPart struct {
	text                  string
	isText, thought       bool
	isCall, isResponse    bool
	id, name              string // of the call or response
	args, response, parts []byte
	only                  []byte // of a response that says one thing, what
	failed                bool
}

// parts reads a content: a text, a part, or a list of either.
func (g *geminiReader) parts(content []byte) *geminiParts {
	p := &geminiParts{}
	if len(content) == 0 {
		return p
	}
	s := &g.block
	s.Reset(content)
	if s.Peek() != '[' {
		p.add(s)
	} else {
		for s.Begin('['); s.More(']'); {
			p.add(s)
		}
	}
	p.failed = failure(s)
	return p
}

// add reads the part that comes next.
func (p *geminiParts) add(s *jsonscan.Scanner) {
	var q geminiPart
	s.Peek()
	from := s.Offset()
	q.read(s)
	raw := s.Since(from)
	switch {
	case s.Err() != nil || string(raw) == "null":
	case q.isCall:
		c := sessionlog.ToolCall{ID: q.id, Name: q.name, Arguments: clone(q.args)}
		if len(c.Arguments) == 0 || c.Arguments[0] != '{' {
			c.Arguments = json.RawMessage("{}")
		}
		p.calls = append(p.calls, c)
	case q.isResponse:
		p.results = append(p.results, sessionlog.ToolResult{CallID: q.id, Output: q.output(), IsError: q.failed})
		p.names = append(p.names, q.name)
	case q.thought:
		p.thoughts = append(p.thoughts, q.text)
	case q.isText:
		p.text(q.text)
	default:
		p.block(raw)
	}
}

func (q *geminiPart) read(s *jsonscan.Scanner) {
	if s.Peek() == '"' {
		q.text, q.isText = s.Text(), true
		return
	}
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "text":
			q.text, q.isText = text(s), true
		case "thought":
			q.thought = isTrue(s)
		case "functionCall":
			q.isCall = true
			q.function(s)
		case "functionResponse":
			q.isResponse = true
			q.function(s)
		default:
			s.Skip()
		}
	}
}

// function reads a functionCall or functionResponse.
func (q *geminiPart) function(s *jsonscan.Scanner) {
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			q.id = text(s)
		case "name":
			q.name = text(s)
		case "args":
			q.args = s.Raw()
		case "response":
			q.given(s)
		case "parts":
			q.parts = s.Raw()
		default:
			s.Skip()
		}
	}
}

// given reads a response: by convention {"output"} or {"error"}.
func (q *geminiPart) given(s *jsonscan.Scanner) {
	from := s.Offset()
	if s.Peek() != '{' {
		s.Skip()
		q.response = s.Since(from)
		return
	}
	n := 0
	for s.Begin('{'); s.More('}'); {
		key := s.Key()
		failed, said := string(key) == "error", string(key) == "output"
		q.failed = q.failed || failed
		n++
		if raw := s.Raw(); failed || said {
			q.only = raw
		}
	}
	if n != 1 {
		q.only = nil
	}
	q.response = s.Since(from)
}

// output is what a tool gave: the one thing that a response says, else all of it.
func (q *geminiPart) output() json.RawMessage {
	switch {
	case len(q.response) == 0:
		return sessionlog.Text("")
	case q.only != nil && q.parts == nil:
		return output(new(jsonscan.Scanner), q.only)
	}
	return clone(q.response)
}

// tools reads the calls that stand with an answer. Their results are held; of an answer that was passed on already calls and
// results that are new are given at once.
func (g *geminiReader) tools(m *geminiRecord, current bool) (calls []sessionlog.ToolCall, err error) {
	var s jsonscan.Scanner
	if s.Reset(m.calls); s.Peek() != '[' {
		return nil, nil
	}
	var results []sessionlog.ToolResult
	for s.Begin('['); s.More(']'); {
		if s.Peek() != '{' {
			s.Skip()
			continue
		}
		c, r, done, err := g.tool(&s)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
		if done {
			results = append(results, r)
		}
	}
	if err := failure(&s); err != nil {
		return nil, err
	}
	if !current {
		if err := g.flush(); err != nil {
			return nil, err
		}
		if err := g.d.Request(calls, nil); err != nil {
			return nil, err
		}
	}
	for _, r := range results {
		if err := g.hold(r); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// tool reads one call with what it gave.
func (g *geminiReader) tool(s *jsonscan.Scanner) (c sessionlog.ToolCall, r sessionlog.ToolResult, done bool, err error) {
	var result, args []byte
	status := ""
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			c.ID = text(s)
		case "name":
			c.Name = text(s)
		case "args":
			args = s.Raw()
		case "result":
			result = s.Raw()
		case "status":
			status = text(s)
		default:
			s.Skip()
		}
	}
	if err := failure(s); err != nil {
		return c, r, false, err
	}
	c.Arguments = arguments(&g.block, args)
	p := g.parts(result)
	switch {
	case len(p.results) > 0:
		if r = p.results[0]; p.others != nil { // pictures beside it
			r.Output = clone(result)
		}
	case len(p.texts) > 0:
		r.Output = sessionlog.Text(p.goal())
	default:
		return c, r, false, p.failed
	}
	r.CallID, r.IsError = c.ID, r.IsError || status == "error" || status == "cancelled"
	return c, r, true, p.failed
}

// content reads one content of a checkpoint.
func (g *geminiReader) content(b []byte, n int) error {
	var role string
	var raw []byte
	s := &g.inner
	s.Reset(b)
	if s.Peek() != '{' {
		g.r.skip("elements that are no content", "unknown", n)
		return nil
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "role":
			role = text(s)
		case "parts":
			raw = s.Raw()
		default:
			s.Skip()
		}
	}
	if err := failure(s); err != nil {
		return err
	}
	g.begin("", "")
	p := g.parts(raw)
	if p.failed != nil {
		return p.failed
	}
	if role != "model" {
		g.pair(p.results, p.names)
		return g.user(p, n)
	}
	if !g.asked && g.command == "" && len(p.calls) == 0 {
		g.r.skip("answers before the first prompt", "the program's own, in the model's name", n)
		return nil
	}
	if err := g.commanded(); err != nil {
		return err
	}
	a, err := g.saying()
	if err != nil {
		return err
	}
	g.number(p.calls)
	a.add(p.parts)
	for _, t := range p.thoughts {
		a.think(t, nil)
	}
	a.calls = append(a.calls, p.calls...)
	return nil
}
