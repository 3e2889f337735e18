package foreign

import (
	"context"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// pi reads the sessions of pi, ~/.pi/agent/sessions/--<path>--/<time>_<id>.jsonl, of versions 1 to 3.
//
// The first line is the session's; every other one is an entry, which names its parent: they are a tree, of which the branch that
// the last entry stands on is the conversation (version 1 has no ids and is that branch alone). What a compaction folded away
// is on the branch still and is read. A file is read twice: once for the tree, once for what the branch says.
//
// An answer is one entry, one that failed or was aborted too: the model was asked. What a person ran herself ("!cmd"), what an
// extension put in, and the summary of a branch that was left go with the next prompt, as attachments of it.
var pi = Importer{name: "pi", looks: looksPi, read: readPi, wanted: func(name string) bool { return strings.HasSuffix(name, ".jsonl") }}

func looksPi(_ string, head []byte) bool {
	type line struct {
		piEntry
		Folder []byte `json:"cwd"`
	}
	found := false
	headLines(head, func(e *line) bool {
		found = e.Kind == "session" && e.ID != "" && e.Folder != nil
		return true
	})
	return found
}

func readPi(ctx context.Context, c *conversation) error {
	branch, err := branchOf(ctx, c.r.File, func(b []byte) (links, error) {
		var e struct {
			Kind   string `json:"type"`
			ID     string `json:"id"`
			Parent []byte `json:"parentId"`
		}
		err := first(b, &e)
		return links{id: e.ID, parent: text(e.Parent), rooted: e.Parent != nil, none: e.Kind == "session", tip: true}, err
	})
	if err != nil {
		return err
	}
	p := &piReader{conversation: c, branch: branch}
	return p.eachLine(ctx, p.line)
}

// A piEntry is one line.
type piEntry struct {
	Kind    string `json:"type"`
	ID      string `json:"id"`
	Version int64  `json:"version"`
	From    []byte `json:"parentSession|branchedFrom"`
	Message []byte `json:"message"`
	Summary string `json:"summary"`
}

// A piReader turns the entries of a branch into events.
type piReader struct {
	*conversation
	branch *tree
	entry  int
}

var piSettings = map[string]string{
	"model_change":          "a setting; the answers tell their model",
	"thinking_level_change": "a setting",
	"label":                 "a bookmark of the person's",
	"session_info":          "the session's name",
	"custom":                "the state of an extension, which the model does not see",
	"leaf":                  "where the person stood in the tree",
}

func (p *piReader) line(b []byte, n int) error {
	var e piEntry
	if err := decode(b, &e); err != nil {
		return err
	}
	if e.Kind == "session" {
		p.session(&e, n)
		return nil
	}
	if p.d == nil {
		p.begin("", "pi")
	}
	p.entry++
	if !p.branch.has(p.entry - 1) {
		p.r.skip("entries on a branch that was left", "the conversation is the branch that the last entry stands on", n)
		return nil
	}
	switch e.Kind {
	case "message":
		return p.message(e.Message, n)
	case "custom_message", "branch_summary":
		p.with(owned(b))
	case "compaction":
		p.compressed("compaction", e.Summary)
	default:
		p.r.skipKind("entries of type ", e.Kind, piSettings, n)
	}
	return nil
}

func (p *piReader) session(e *piEntry, n int) {
	if p.d != nil {
		p.r.skip("a second line on the session", "the first one counts", n)
		return
	}
	p.r.Session = e.ID
	p.r.note("the session's form is version %d", max(e.Version, 1))
	if e.From != nil && string(e.From) != "null" {
		p.r.note("the session was taken from another one, whose entries it repeats")
	}
	if p.branch.orphan {
		p.r.note("an entry names a parent that is not there; the branch begins at it")
	}
	p.begin(e.ID, "pi")
}

// A piMessage is the message of an entry.
type piMessage struct {
	Role    string `json:"role"`
	Content []byte `json:"content"`
	Call    string `json:"toolCallId"`
	Failed  bool   `json:"isError"`
	Hidden  bool   `json:"excludeFromContext"`
	Model   string `json:"model"`
	API     string `json:"api"`
	Stop    string `json:"stopReason"`
	Fault   []byte `json:"errorMessage"`
	Usage   tokens `json:"usage"`
}

// A piBlock is a block of an answer.
type piBlock struct {
	Kind  string `json:"type"`
	Text  string `json:"text|thinking"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Args  []byte `json:"arguments"`
	Whole []byte `json:"*"`
}

func (p *piReader) message(b []byte, n int) error {
	if b == nil {
		p.r.skip("messages without a message", "unknown", n)
		return nil
	}
	var m piMessage
	if err := decode(b, &m); err != nil {
		return err
	}
	switch m.Role {
	case "user":
		asked := readParts(m.Content)
		p.ask(&sessionlog.RunStarted{Goal: asked.goal(), Attachments: asked.others})
	case "assistant":
		p.turnOf(&m, n)
	case "toolResult":
		p.result(sessionlog.ToolResult{CallID: m.Call, Output: output(m.Content), IsError: m.Failed})
	case "bashExecution", "custom", "hookMessage", "branchSummary":
		if m.Hidden {
			p.r.skip("commands of the person's that the model does not see", "no part of the conversation", n)
			return nil
		}
		p.with(owned(b))
	default:
		p.r.skip("messages of "+m.Role, "unknown", n)
	}
	return nil
}

// piReasons are why a run ends whose last answer stopped so.
var piReasons = map[string]string{"error": sessionlog.ReasonError, "aborted": sessionlog.ReasonInterrupted}

// turnOf is one turn. Thoughts, texts and calls stand in it in the order in which the model gave them.
func (p *piReader) turnOf(m *piMessage, n int) {
	a := answer{model: m.Model, tokens: m.Usage.sum()}
	_ = each(m.Content, func(b *piBlock) {
		switch {
		case b.Whole[0] == '"':
			a.text(text(b.Whole))
		case b.Whole[0] != '{':
		case b.Kind == "text":
			a.text(b.Text)
		case b.Kind == "thinking":
			a.think(b.Text, b.Whole)
		case b.Kind == "toolCall":
			a.call(b.ID, b.Name, b.Args)
		default:
			a.block(b.Whole)
		}
	})
	if m.Fault != nil {
		p.r.skip("what an answer failed with", "the run's end tells that it failed, not how", n)
	}
	if m.API != "" {
		p.protocol = m.API
	}
	p.turn(&a, piReasons[m.Stop])
}
