package foreign

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A claudeReader turns the lines of a transcript's branch into events.
type claudeReader struct {
	r    *Report
	out  func(sessionlog.Event) error
	tree *claudeTree
	node int // the next line that has a uuid
	talk
	inner   jsonscan.Scanner
	block   jsonscan.Scanner
	command string // what the person typed as a command, until it shows whether the model hears of it
	from    int    // its line
}

// claudeOther are the types of lines that are no part of a conversation, and what they are.
var claudeOther = map[string]string{
	"summary": "a title", "ai-title": "a title", "custom-title": "a title", "agent-name": "a title", "tag": "a title",
	"last-prompt": "where the conversation stands", "mode": "a setting", "permission-mode": "a setting",
	"agent-setting": "a setting", "agent-color": "a setting", "worktree-state": "a setting",
	"file-history-snapshot": "files as they were", "content-replacement": "what was shortened",
	"queue-operation": "prompts that wait; they come again when they are asked",
	"progress":        "what a tool is doing", "pr-link": "a link", "speculation-accept": "a guess of the next prompt",
	"attribution-snapshot": "files as they were", "bridge-session": "a setting", "relocated": "a setting",
}

const claudeOwn = "the program's own, in the user's name"

// claudeLine is one line.
type claudeLine struct {
	kind, subtype, session, version, request, agent string
	meta, summary, failed, has                      bool
	message                                         claudeMessage
	attachment, result                              []byte
}

func (l *claudeLine) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			l.kind = text(s)
		case "subtype":
			l.subtype = text(s)
		case "sessionId":
			l.session = text(s)
		case "version":
			l.version = text(s)
		case "requestId":
			l.request = text(s)
		case "agentId":
			l.agent = text(s)
		case "uuid":
			_, l.has = claudeUUID(s)
		case "isMeta":
			l.meta = isTrue(s)
		case "isCompactSummary":
			l.summary = isTrue(s)
		case "isApiErrorMessage":
			l.failed = isTrue(s)
		case "message":
			l.message.read(s)
		case "attachment":
			l.attachment = s.Raw()
		case "toolUseResult":
			l.result = s.Raw()
		default:
			s.Skip()
		}
	}
}

// line reads one line.
func (c *claudeReader) line(s *jsonscan.Scanner, n int) error {
	var l claudeLine
	l.read(s)
	if err := s.End(); err != nil {
		return broken{err}
	}
	if l.has {
		c.node++
		if c.node > len(c.tree.nodes) {
			c.r.note("the transcript grew while it was read: what came is not in the log")
			return nil
		}
		if f := c.tree.nodes[c.node-1].flags; f&claudeKept == 0 {
			c.left(&l, f, n)
			return nil
		}
	}
	if l.version != "" {
		c.r.Version = l.version
	}
	c.begin(&l)
	switch l.kind {
	case "user":
		return c.user(&l, n)
	case "assistant":
		return c.assistant(&l, n)
	case "attachment":
		return c.attached(&l, n)
	case "system":
		return c.system(&l, n)
	}
	reason := claudeOther[l.kind]
	c.r.skip("lines of type "+l.kind, why(reason != "", reason), n)
	return nil
}

// left counts a line that is not of the conversation.
func (c *claudeReader) left(l *claudeLine, f claudeFlags, n int) {
	switch {
	case f&claudeSide != 0:
		c.r.skip("lines of sub-agents", "no turns of this conversation", n)
	case f&claudeSpeaks != 0:
		c.r.skip("lines of branches that were left", "the person went back and asked anew", n)
	default:
		c.r.skip("lines of type "+l.kind+" beside the conversation", "nothing of it hangs on them", n)
	}
}

// begin begins with the first line that knows the session's id. A session that goes on from another one keeps that one's lines.
func (c *claudeReader) begin(l *claudeLine) {
	if c.d != nil || l.session == "" && !l.has {
		return
	}
	id := l.session
	if id == "" {
		id = "claude-code"
	}
	if l.agent != "" {
		id = l.agent
	}
	c.r.Session = id
	c.start(id, "anthropic-messages", c.out)
}

// A claudeMessage is the message of a line, as the Messages API has it.
type claudeMessage struct {
	id, model string
	content   []byte
	tokens    int64
}

func (m *claudeMessage) read(s *jsonscan.Scanner) {
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			m.id = text(s)
		case "model":
			m.model = text(s)
		case "content":
			m.content = s.Raw()
		case "usage":
			m.tokens = claudeTokens(s)
		default:
			s.Skip()
		}
	}
}

// claudeTokens is all that went in, caches included, and came out.
func claudeTokens(s *jsonscan.Scanner) (n int64) {
	if s.Peek() != '{' {
		s.Skip()
		return 0
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens":
			n += count(s)
		default:
			s.Skip()
		}
	}
	return n
}

// assistant reads one line of an answer.
func (c *claudeReader) assistant(l *claudeLine, n int) error {
	m := &l.message
	if m.model == "<synthetic>" || l.failed {
		c.r.skip("answers that the program wrote", "no model said them", n)
		if l.failed {
			c.r.note("line %d: the program says that the model could not be asked", n)
			return c.end(sessionlog.ReasonError)
		}
		return nil
	}
	if err := c.commanded(); err != nil {
		return err
	}
	id := m.id
	if id == "" {
		id = l.request
	}
	if !c.said.some || id == "" || id != c.said.id {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.said.some, c.said.id, c.said.model = true, id, m.model
	c.said.tokens = max(c.said.tokens, m.tokens)
	return c.blocks(m.content)
}

// blocks reads the content of an answer.
func (c *claudeReader) blocks(content []byte) error {
	s := &c.inner
	s.Reset(content)
	if s.Peek() != '[' {
		c.said.add(readParts(s, content))
		return failure(s)
	}
	for s.Begin('['); s.More(']'); {
		var b claudeBlock
		raw := b.read(s)
		if s.Err() != nil {
			break
		}
		switch b.kind {
		case "text":
			c.said.add(parts{texts: []string{b.text}})
		case "thinking":
			c.said.think(b.text, b.thought())
		case "redacted_thinking":
			c.said.think("", raw)
		case "tool_use":
			call := sessionlog.ToolCall{ID: b.id, Name: b.name, Arguments: arguments(&c.block, b.input)}
			c.said.calls = append(c.said.calls, call)
		default:
			c.said.block(raw) // what the provider did itself
		}
	}
	return failure(s)
}

// A claudeBlock is a block of a content.
type claudeBlock struct {
	kind, text, id, name, use string
	sign, input, content      []byte
	failed                    bool
}

// read reads the block that comes next, and returns it as it stands.
func (b *claudeBlock) read(s *jsonscan.Scanner) (raw []byte) {
	c := s.Peek()
	from := s.Offset()
	switch c {
	case '"':
		b.kind, b.text = "text", s.Text()
	case '{':
		b.fields(s)
	default:
		s.Skip()
	}
	return s.Since(from)
}

func (b *claudeBlock) fields(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			b.kind = text(s)
		case "text", "thinking":
			b.text = text(s)
		case "signature":
			b.sign = s.Raw()
		case "id":
			b.id = text(s)
		case "name":
			b.name = text(s)
		case "input":
			b.input = s.Raw()
		case "tool_use_id":
			b.use = text(s)
		case "content":
			b.content = s.Raw()
		case "is_error":
			b.failed = isTrue(s)
		default:
			s.Skip()
		}
	}
}

// thought is a block of thoughts in the order that the provider has it in; nil where nobody signed it.
func (b *claudeBlock) thought() []byte {
	if len(b.sign) < 3 {
		return nil
	}
	out := append([]byte(`{"type":"thinking","thinking":`), sessionlog.Text(b.text)...)
	return append(append(append(out, `,"signature":`...), b.sign...), '}')
}

// finish ends the log.
func (c *claudeReader) finish() error {
	if c.d == nil {
		return &Error{Path: c.r.File, Err: ErrEmpty}
	}
	c.drop()
	c.r.claudeAgents()
	return c.end("")
}

// system reads what the program says for itself.
func (c *claudeReader) system(l *claudeLine, n int) error {
	c.r.skip("lines of type system/"+l.subtype, "what the program did", n)
	return nil
}

// attached reads what the program gives the model along; a prompt that came while a turn was under way is one of them.
func (c *claudeReader) attached(l *claudeLine, n int) error {
	s := &c.inner
	s.Reset(l.attachment)
	var kind string
	var prompt []byte
	if s.Peek() == '{' {
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "type":
				kind = text(s)
			case "prompt":
				prompt = s.Raw()
			default:
				s.Skip()
			}
		}
	}
	if err := failure(s); err != nil {
		return err
	}
	if kind != "queued_command" || prompt == nil {
		c.r.skip("attachments of type "+kind, "what the program gives the model along", n)
		return nil
	}
	return c.prompt(readParts(s, prompt), n)
}

// trimmedPrefix reports whether a text begins with one of the prefixes, behind white space.
func trimmedPrefix(text string, prefixes ...string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
