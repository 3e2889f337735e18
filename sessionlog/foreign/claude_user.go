package foreign

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// user reads a line in the user's name: what tools gave, a prompt, or something of the program's.
func (c *claudeReader) user(l *claudeLine, n int) error {
	m := &l.message
	switch {
	case hasResult(m.content):
		return c.tools(l, m.content, n)
	case l.summary:
		p := readParts(&c.inner, m.content)
		if err := failure(&c.inner); err != nil {
			return err
		}
		return c.compressed("compact", p.goal())
	}
	p := readParts(&c.inner, m.content)
	if err := failure(&c.inner); err != nil {
		return err
	}
	if l.meta {
		c.r.skip("messages of user", claudeOwn, n)
		return nil
	}
	return c.prompt(p, n)
}

// prompt is what the person said, if it is that.
func (c *claudeReader) prompt(p parts, n int) error {
	var said []string
	for _, text := range p.texts {
		switch {
		case trimmedPrefix(text, "[Request interrupted by user"):
			return c.end(sessionlog.ReasonInterrupted)
		case trimmedPrefix(text, "<command-name>", "<command-message>"):
			c.drop()
			c.command, c.from = claudeCommand(text), n
		case trimmedPrefix(text, "<local-command-", "<bash-stdout>", "<bash-stderr>", "<system-reminder>", "<task-notification>"):
			c.r.skip("messages of user", claudeOwn, n)
		case trimmedPrefix(text, "<bash-input>"):
			c.r.skip("commands that the person ran", "the model was not asked", n)
		default:
			said = append(said, text)
		}
	}
	if len(said) == 0 && len(p.others) == 0 {
		return nil
	}
	c.drop()
	return c.ask(&sessionlog.RunStarted{Goal: strings.Join(said, "\n"), Attachments: p.others})
}

// claudeCommand is a command as the person typed it: "/name words".
func claudeCommand(text string) string {
	between := func(open, end string) string {
		_, rest, _ := strings.Cut(text, open)
		inner, _, ok := strings.Cut(rest, end)
		if !ok {
			return ""
		}
		return strings.TrimSpace(inner)
	}
	command := between("<command-name>", "</command-name>")
	return strings.TrimSpace(command + " " + between("<command-args>", "</command-args>"))
}

// commanded is called where the model answers: a command that stands open was for it.
func (c *claudeReader) commanded() error {
	if c.command == "" {
		return nil
	}
	command := c.command
	c.command = ""
	return c.ask(&sessionlog.RunStarted{Goal: command})
}

// drop counts a command that the model never heard of.
func (c *claudeReader) drop() {
	if c.command != "" {
		c.r.skip("commands to the program", "the model was not asked", c.from)
		c.command = ""
	}
}

// tools reads what tools gave. It does not end the answer: where tools run while the model still speaks, more of that follows.
func (c *claudeReader) tools(l *claudeLine, content []byte, n int) error {
	s := &c.inner
	s.Reset(content)
	for s.Begin('['); s.More(']'); {
		var b claudeBlock
		if b.read(s); s.Err() != nil {
			break
		}
		if b.kind != "tool_result" {
			c.r.skip("blocks beside what tools gave", claudeOwn, n)
			continue
		}
		out := output(&c.block, b.content)
		if err := failure(&c.block); err != nil {
			return err
		}
		if err := c.hold(sessionlog.ToolResult{CallID: b.use, Output: out, IsError: b.failed}); err != nil {
			return err
		}
	}
	if err := failure(s); err != nil {
		return err
	}
	return c.agent(l.result)
}

// agent reads what is kept beside the result of a call that asked a sub-agent.
func (c *claudeReader) agent(result []byte) error {
	s := &c.inner
	if s.Reset(result); s.Peek() != '{' || !bytes.Contains(result, []byte(`"agentId"`)) {
		return nil
	}
	e := &sessionlog.AgentProcessChanged{ParentSessionID: c.r.Session}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "agentId":
			e.AgentID = text(s)
		case "agentType":
			e.Role = text(s)
		case "status":
			e.State = text(s)
		default:
			s.Skip()
		}
	}
	if e.AgentID == "" {
		return failure(s)
	}
	switch e.State {
	case "async_launched":
		e.State = agentRunning
	case "completed":
		e.State = agentJoined
	}
	c.then(e)
	return failure(s)
}
