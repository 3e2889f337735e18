package foreign

import (
	"errors"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A geminiReader turns messages into events.
type geminiReader struct {
	r    *Report
	out  func(sessionlog.Event) error
	seed maphash.Seed
	talk
	inner, block jsonscan.Scanner

	order []uint64        // first reading: messages that stand, in order
	gone  map[uint64]bool // messages that were taken back
	back  map[int]bool    // lines that took something back

	seen    map[uint64]bool // messages that were met
	current uint64          // the answer that is gathered
	asked   bool
	command string // what may be a command to the program or a prompt, until the model answers
	from    int

	given int // calls that were given an id
	open  []geminiCall
}

// A geminiCall is a call of the last answer of a checkpoint.
type geminiCall struct {
	name, id string
	done     bool
}

// A geminiRecord is one line or message.
type geminiRecord struct {
	id, kind, session, model, rewind, agent string
	hasRewind, hasSet                       bool
	content, calls, thoughts, set           []byte
	tokens                                  int64
}

func (m *geminiRecord) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			m.id = text(s)
		case "type":
			m.kind = text(s)
		case "kind":
			m.agent = text(s)
		case "sessionId":
			m.session = text(s)
		case "model":
			m.model = text(s)
		case "content":
			m.content = s.Raw()
		case "toolCalls":
			m.calls = s.Raw()
		case "thoughts":
			m.thoughts = s.Raw()
		case "tokens":
			m.tokens = geminiTokens(s)
		case "$rewindTo":
			m.rewind, m.hasRewind = text(s), true
		case "$set":
			m.set, m.hasSet = s.Raw(), true
		default:
			s.Skip()
		}
	}
}

func geminiTokens(s *jsonscan.Scanner) (n int64) {
	if s.Peek() != '{' {
		s.Skip()
		return 0
	}
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == "total" {
			n = count(s)
		} else {
			s.Skip()
		}
	}
	return n
}

func (g *geminiReader) hash(id string) uint64 { return maphash.String(g.seed, id) }

// plan finds what was taken back. Of a line that begins with a message's id, as all do, it reads no more.
func (g *geminiReader) plan(s *jsonscan.Scanner, n int) error {
	var m geminiRecord
	if s.Peek() != '{' {
		return nil // line says so
	}
	from := s.Mark()
	if s.Begin('{'); s.KeyIs("id") {
		m.id = text(s)
	} else if s.KeyIs("$rewindTo") {
		m.rewind, m.hasRewind = text(s), true
	} else if !s.KeyIs("$set") {
		s.Back(from)
		m.read(s)
	}
	switch {
	case m.hasRewind:
		at := len(g.order)
		for id := g.hash(m.rewind); at > 0; at-- {
			if g.order[at-1] == id {
				break
			}
		}
		if at == 0 {
			return nil // of a message that is not here; line says so
		}
		if g.gone == nil {
			g.gone, g.back = map[uint64]bool{}, map[int]bool{}
		}
		g.back[n] = true
		for _, id := range g.order[at-1:] {
			g.gone[id] = true
		}
		g.order = g.order[:at-1]
	case m.id != "":
		if id := g.hash(m.id); len(g.order) == 0 || g.order[len(g.order)-1] != id {
			g.order = append(g.order, id)
		}
	}
	return nil
}

// line reads one line.
func (g *geminiReader) line(s *jsonscan.Scanner, n int) error {
	g.order = nil
	var m geminiRecord
	m.read(s)
	if err := s.End(); err != nil {
		return broken{err}
	}
	switch {
	case m.hasRewind:
		if g.back[n] {
			g.r.note("line %d: the person went back: what was taken back is counted as skipped", n)
		} else {
			g.r.note("line %d: the person went back to a message that is not there: nothing was taken back", n)
		}
		return nil
	case m.id != "":
		return g.message(&m, n)
	case m.hasSet:
		return g.history(m.set, n)
	case m.session != "":
		g.begin(m.session, m.agent)
		return nil
	}
	g.r.skip("lines of no known form", "unknown", n)
	return nil
}

// about reads a key of the object that an old session is.
func (g *geminiReader) about(key string, b []byte) error {
	g.inner.Reset(b)
	switch key {
	case "sessionId":
		g.begin(text(&g.inner), "")
	case "kind":
		if text(&g.inner) == "subagent" {
			g.r.note("this is the session of a sub-agent")
		}
	}
	return failure(&g.inner)
}

func (g *geminiReader) begin(id, kind string) {
	if kind == "subagent" {
		g.r.note("this is the session of a sub-agent")
	}
	if g.d != nil {
		return
	}
	g.r.Session = id
	if id == "" {
		id = "gemini-cli"
	}
	g.start(id, "gemini", g.out)
}

// history is the history as it was made anew. The first one of a session, before anything was said, is read as what it is.
func (g *geminiReader) history(set []byte, n int) error {
	var s jsonscan.Scanner
	s.Reset(set)
	if s.Peek() != '{' {
		return nil
	}
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "messages" || s.Peek() != '[' {
			s.Skip()
			continue
		}
		again := g.asked
		if again { // what it says of the last answer is less than what came
			if err := g.flush(); err != nil {
				return err
			}
		}
		for s.Begin('['); s.More(']'); {
			if s.Peek() != '{' {
				s.Skip()
				continue
			}
			var m geminiRecord
			if m.read(&s); s.Err() != nil {
				break
			}
			if again && !g.seen[g.hash(m.id)] {
				g.seen[g.hash(m.id)] = true
				g.r.skip("messages of a history that was made anew", "what the model gets from there on; nobody said them there", n)
				continue
			}
			if err := g.message(&m, n); err != nil {
				return err
			}
		}
	}
	return failure(&s)
}

// element reads one message of the object that an old session is.
func (g *geminiReader) element(b []byte, n int) error {
	var m geminiRecord
	g.inner.Reset(b)
	if m.read(&g.inner); g.inner.Err() != nil {
		return failure(&g.inner)
	}
	return g.message(&m, n)
}

// message reads one message, or what is new in it.
func (g *geminiReader) message(m *geminiRecord, n int) error {
	g.begin("", "")
	id := g.hash(m.id)
	if g.gone[id] {
		g.r.skip("messages that were taken back", "the person went back and asked anew", n)
		return nil
	}
	again := m.id != "" && g.seen[id]
	g.seen[id] = true
	switch {
	case m.kind == "gemini" && again && (id != g.current || !g.said.some):
		_, err := g.tools(m, false)
		return err
	case m.kind == "gemini":
		return g.model(m, id)
	case again:
		return nil
	case m.kind == "user":
		return g.user(g.parts(m.content), n)
	case m.kind == "error":
		g.r.note("line %d: the program says that a turn failed", n)
		return g.end(sessionlog.ReasonError)
	}
	g.r.skip("messages of type "+m.kind, why(m.kind == "info" || m.kind == "warning", "what the program told the person"), n)
	return nil
}

// model reads an answer, in the form that it has so far: a later one of the same message replaces it.
func (g *geminiReader) model(m *geminiRecord, id uint64) error {
	if id != g.current || !g.said.some {
		if err := errors.Join(g.flush(), g.commanded()); err != nil {
			return err
		}
	}
	g.current, g.said = id, answer{some: true, model: m.model, tokens: m.tokens}
	p := g.parts(m.content)
	if p.failed != nil {
		return p.failed
	}
	g.said.add(p.parts)
	for _, t := range p.thoughts {
		g.said.think(t, nil)
	}
	if err := g.thoughts(m.thoughts); err != nil {
		return err
	}
	calls, err := g.tools(m, true)
	if len(calls) == 0 {
		calls = p.calls
	}
	g.said.calls = calls
	return err
}

// thoughts reads those that stand apart from the content.
func (g *geminiReader) thoughts(b []byte) error {
	s := &g.inner
	if s.Reset(b); s.Peek() != '[' {
		return nil
	}
	for s.Begin('['); s.More(']'); {
		if s.Peek() != '{' {
			s.Skip()
			continue
		}
		var subject, what string
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "subject":
				subject = text(s)
			case "description":
				what = text(s)
			default:
				s.Skip()
			}
		}
		if subject != "" {
			what = "**" + subject + "** " + what
		}
		g.said.think(what, nil)
	}
	return failure(s)
}

// user reads a prompt, or what tools gave.
func (g *geminiReader) user(p *geminiParts, n int) error {
	if p.failed != nil {
		return p.failed
	}
	for _, r := range p.results {
		if err := g.hold(r); err != nil {
			return err
		}
	}
	goal := strings.TrimSpace(p.goal())
	switch {
	case len(p.results) > 0:
		if goal != "" {
			g.r.skip("texts beside what tools gave", "what the program gives the model along", n)
		}
		return nil
	case goal == "" && len(p.others) == 0:
		return nil
	case trimmedPrefix(goal, "<session_context>", "<hook_context>"):
		g.r.skip("messages of user", claudeOwn, n)
		return nil
	case trimmedPrefix(goal, "/", "?"):
		g.drop()
		g.command, g.from = p.goal(), n
		return nil
	}
	g.drop()
	return g.prompt(&sessionlog.RunStarted{Goal: p.goal(), Attachments: p.others})
}

func (g *geminiReader) prompt(e *sessionlog.RunStarted) error {
	g.asked = true
	return g.ask(e)
}

// commanded is called where the model answers: what looked like a command was a prompt.
func (g *geminiReader) commanded() error {
	if g.command == "" {
		return nil
	}
	goal := g.command
	g.command = ""
	return g.prompt(&sessionlog.RunStarted{Goal: goal})
}

func (g *geminiReader) drop() {
	if g.command != "" {
		g.r.skip("commands to the program", "the model was not asked", g.from)
		g.command = ""
	}
}

func (g *geminiReader) finish() error {
	if g.d == nil {
		return &Error{Path: g.r.File, Err: ErrEmpty}
	}
	g.drop()
	return g.end("")
}

// number gives ids to the calls of a checkpoint's answer that have none.
func (g *geminiReader) number(calls []sessionlog.ToolCall) {
	g.open = g.open[:0]
	for i := range calls {
		if calls[i].ID == "" {
			g.given++
			calls[i].ID = "call_" + strconv.Itoa(g.given)
		}
		g.open = append(g.open, geminiCall{name: calls[i].Name, id: calls[i].ID})
	}
}

// pair gives results without an id that of the first call of their tool which has none yet.
func (g *geminiReader) pair(results []sessionlog.ToolResult, names []string) {
	for i := range results {
		for j := range g.open {
			c := &g.open[j]
			if !c.done && (results[i].CallID == c.id || results[i].CallID == "" && names[i] == c.name) {
				results[i].CallID, c.done = c.id, true
				break
			}
		}
	}
}
