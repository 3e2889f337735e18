package foreign

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// claude reads the transcripts of Claude Code, ~/.claude/projects/PROJECT/SESSION.jsonl.
//
// Each line that has a uuid names the one before it, by parentUuid: going back and asking again makes a tree. The conversation
// is the branch that the last line stands on; the others are counted. Where the history was made shorter a line begins anew and
// names the one before by logicalParentUuid, which is followed.
//
// One answer is several lines, a block each, with one message id and the usage of the whole: one turn. The results of calls
// beside each other each hang on the line of their own call, so that all but one of them stand beside the branch: a result, or
// another line of an answer, belongs to the branch where what it hangs on does.
//
// Sub-agents stand in files of their own, SESSION/subagents/agent-*.jsonl (in older versions in the same file, with
// isSidechain), and are no turns of the conversation. Such a file can be read by itself.
//
// The file is read twice, once for the tree (tree.go). Memory is one line, one answer with its results, and about 100
// bytes a line.
var claude = Importer{name: "claude-code", looks: looksClaude, read: readClaude, wanted: func(name string) bool {
	return strings.HasSuffix(name, ".jsonl") && !strings.HasPrefix(name, "agent-")
}}

func looksClaude(_ string, head []byte) bool {
	type line struct {
		Kind    string `json:"type"`
		Side    []byte `json:"isSidechain"`
		Session []byte `json:"sessionId"`
		Leaf    []byte `json:"leafUuid|messageId"`
		Message struct {
			Parts []byte `json:"parts"` // qwen-code's lines have the same keys otherwise
		} `json:"message"`
	}
	return headLines(head, func(l *line) bool {
		return l.Message.Parts == nil && l.Side != nil || l.Session != nil && l.Kind == "queue-operation" ||
			l.Leaf != nil && claudeOther[l.Kind] != ""
	})
}

func readClaude(ctx context.Context, conv *conversation) error {
	r := conv.r
	tree := &claudeTree{index: map[uint64]int32{}, seed: maphash.MakeSeed()}
	err := walk(ctx, r.File, newReport("", r.File), tree.line)
	if err != nil {
		return err
	}
	tree.choose(r)
	c := &claudeReader{conversation: conv, tree: tree}
	if err = c.eachLine(ctx, c.line); err == nil {
		c.ignored()
		r.claudeAgents()
	}
	return err
}

// claudeAgents notes the transcripts of sub-agents beside the one that was read.
func (r *Report) claudeAgents() {
	dir := filepath.Join(strings.TrimSuffix(r.File, ".jsonl"), "subagents")
	if found, _ := filepath.Glob(filepath.Join(globEscape(dir), "*.jsonl")); len(found) > 0 {
		r.note("transcripts of sub-agents stand in %s, and are no turns of this one: %d", dir, len(found))
	}
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

// A claudeLine is one line.
type claudeLine struct {
	Kind       string        `json:"type"`
	Subtype    string        `json:"subtype"`
	Session    string        `json:"sessionId"`
	Version    string        `json:"version"`
	Request    string        `json:"requestId"`
	Agent      string        `json:"agentId"`
	UUID       []byte        `json:"uuid"`
	Meta       bool          `json:"isMeta"`
	Summary    bool          `json:"isCompactSummary"`
	Failed     bool          `json:"isApiErrorMessage"`
	Message    claudeMessage `json:"message"`
	Attachment struct {
		Kind   string `json:"type"`
		Prompt []byte `json:"prompt"`
	} `json:"attachment"`
	Result []byte `json:"toolUseResult"`
}

// A claudeMessage is the message of a line, as the Messages API has it.
type claudeMessage struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Content []byte `json:"content"`
	Usage   tokens `json:"usage"` // all that went in, caches included, and came out
}

// hasResult reports whether a content begins with what a tool gave.
func hasResult(content []byte) bool {
	return len(content) > 0 && content[0] == '[' && bytes.Contains(content[:min(len(content), 256)], []byte(`"tool_result"`))
}

// A claudeBlock is a block of a content.
type claudeBlock struct {
	Kind    string `json:"type"`
	Text    string `json:"text|thinking"`
	Sign    []byte `json:"signature"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Input   []byte `json:"input"`
	Use     string `json:"tool_use_id"`
	Content []byte `json:"content"`
	Failed  bool   `json:"is_error"`
	Whole   []byte `json:"*"`
}

// thought is a block of thoughts in the order that the provider has it in; nil where nobody signed it.
func (b *claudeBlock) thought() []byte {
	if len(b.Sign) < 3 {
		return nil
	}
	out := append([]byte(`{"type":"thinking","thinking":`), sessionlog.Text(b.Text)...)
	return append(append(append(out, `,"signature":`...), b.Sign...), '}')
}

// A claudeReader turns the lines of a transcript's branch into events.
type claudeReader struct {
	*conversation
	tree *claudeTree
	node int // the next line that has a uuid
}

func (c *claudeReader) line(b []byte, n int) error {
	var l claudeLine
	if err := decode(b, &l); err != nil {
		return err
	}
	isNode := len(l.UUID) > 0 && l.UUID[0] == '"'
	if isNode {
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
	c.r.Version = cmp.Or(l.Version, c.r.Version)
	if c.d == nil && (l.Session != "" || isNode) { // a session that goes on from another one keeps that one's lines
		c.r.Session = cmp.Or(l.Agent, l.Session, c.r.Format)
		c.begin(c.r.Session, "anthropic-messages")
	}
	switch l.Kind {
	case "user":
		c.user(&l, n)
	case "assistant":
		c.assistant(&l, n)
	case "attachment": // what the program gives the model along; a prompt that came while a turn was under way is one of them
		if l.Attachment.Kind == "queued_command" && l.Attachment.Prompt != nil {
			c.prompt(l.Attachment.Prompt, n)
		} else {
			c.r.skip("attachments of type "+l.Attachment.Kind, "what the program gives the model along", n)
		}
	case "system":
		c.r.skip("lines of type system/"+l.Subtype, "what the program did", n)
	default:
		c.r.skipKind("lines of type ", l.Kind, claudeOther, n)
	}
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
		c.r.skip("lines of type "+l.Kind+" beside the conversation", "nothing of it hangs on them", n)
	}
}

// assistant reads one line of an answer.
func (c *claudeReader) assistant(l *claudeLine, n int) {
	m := &l.Message
	if m.Model == "<synthetic>" || l.Failed {
		c.r.skip("answers that the program wrote", "no model said them", n)
		if l.Failed {
			c.r.note("line %d: the program says that the model could not be asked", n)
			c.end(sessionlog.ReasonError)
		}
		return
	}
	c.commanded()
	a := &c.answer
	id := cmp.Or(m.ID, l.Request)
	if !a.some || id == "" || id != a.id {
		c.flush()
	}
	a.some, a.id, a.model = true, id, m.Model
	a.tokens = max(a.tokens, m.Usage.sum())
	if !isContent(m.Content) {
		return
	}
	_ = each(m.Content, func(b *claudeBlock) {
		if b.Whole[0] == '"' {
			b.Kind, b.Text = "text", text(b.Whole)
		}
		switch b.Kind {
		case "text":
			a.text(b.Text)
		case "thinking":
			a.think(b.Text, b.thought())
		case "redacted_thinking":
			a.think("", b.Whole)
		case "tool_use":
			a.calls = append(a.calls, sessionlog.ToolCall{ID: b.ID, Name: b.Name, Arguments: arguments(b.Input)})
		default:
			a.block(b.Whole) // what the provider did itself
		}
	})
}

// user reads a line in the user's name: what tools gave, a prompt, or something of the program's.
func (c *claudeReader) user(l *claudeLine, n int) {
	switch {
	case hasResult(l.Message.Content):
		c.tools(l, n)
	case l.Summary:
		p := readParts(l.Message.Content)
		c.compressed("compact", p.goal())
	case l.Meta:
		c.r.skip("messages of user", claudeOwn, n)
	default:
		c.prompt(l.Message.Content, n)
	}
}

// prompt is what the person said, if it is that.
func (c *claudeReader) prompt(content []byte, n int) {
	p := readParts(content)
	var asked []string
	for _, text := range p.texts {
		switch {
		case trimmedPrefix(text, "[Request interrupted by user"):
			c.end(sessionlog.ReasonInterrupted)
			return
		case trimmedPrefix(text, "<command-name>", "<command-message>"):
			c.ignored()
			c.typed = command{claudeCommand(text), n}
		case trimmedPrefix(text, "<local-command-", "<bash-stdout>", "<bash-stderr>", "<system-reminder>", "<task-notification>"):
			c.r.skip("messages of user", claudeOwn, n)
		case trimmedPrefix(text, "<bash-input>"):
			c.r.skip("commands that the person ran", "the model was not asked", n)
		default:
			asked = append(asked, text)
		}
	}
	if len(asked) == 0 && len(p.others) == 0 {
		return
	}
	c.ignored()
	c.ask(&sessionlog.RunStarted{Goal: strings.Join(asked, "\n"), Attachments: p.others})
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

// tools reads what tools gave. It does not end the answer: where tools run while the model still speaks, more of that follows.
func (c *claudeReader) tools(l *claudeLine, n int) {
	_ = each(l.Message.Content, func(b *claudeBlock) {
		if b.Kind != "tool_result" {
			c.r.skip("blocks beside what tools gave", claudeOwn, n)
			return
		}
		c.hold(sessionlog.ToolResult{CallID: b.Use, Output: output(b.Content), IsError: b.Failed})
	})
	c.agent(l.Result)
}

var claudeStates = map[string]string{"async_launched": agentRunning, "completed": agentJoined}

// agent reads what is kept beside the result of a call that asked a sub-agent.
func (c *claudeReader) agent(result json.RawMessage) {
	if len(result) == 0 || result[0] != '{' || !bytes.Contains(result, []byte(`"agentId"`)) {
		return
	}
	var kept struct {
		ID    string `json:"agentId"`
		Role  string `json:"agentType"`
		State string `json:"status"`
	}
	if decode(result, &kept) != nil || kept.ID == "" {
		return
	}
	state := cmp.Or(claudeStates[kept.State], kept.State)
	c.then(&sessionlog.AgentProcessChanged{ParentSessionID: c.r.Session, AgentID: kept.ID, Role: kept.Role, State: state})
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
