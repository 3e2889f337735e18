package foreign

import (
	"bytes"
	"context"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// qwen reads the sessions of qwen-code, ~/.qwen/projects/<path>/chats/<id>.jsonl, and those of its sub-agents,
// ~/.qwen/projects/<path>/subagents/<session>/agent-*.jsonl, each of which is a session of its own here.
//
// A line is a record {uuid, parentUuid, type, message}; the messages are in Gemini's form, whatever model is asked. Records are a
// tree, of which the branch that the last message stands on is the conversation. An answer is one record, in a sub-agent's file every
// record between two of the other side's. What a sub-agent did stands in a session's own file as telemetry alone.
//
// A call that failed, or that the person refused, is an error by its status. A request that failed leaves a line of telemetry: the
// run ends with an error unless an answer follows.
var qwen = Importer{name: "qwen-code", looks: looksQwen, read: readQwen, wanted: func(name string) bool {
	id, ok := strings.CutSuffix(name, ".jsonl")
	return ok && uuid.MatchString(id)
}}

func looksQwen(_ string, head []byte) bool {
	type line struct {
		qwenLine
		Provenance []byte `json:"provenance"`
	}
	return headLines(head, func(l *line) bool {
		parts := len(l.Message.Parts) > 0 && l.Message.Parts[0] == '['
		return l.ID != "" && l.Session != "" && (l.Provenance != nil || l.Payload != nil || parts)
	})
}

func readQwen(ctx context.Context, c *conversation) error {
	// Records about the program may stand beside the tree; a conversation ends with none of them but one that goes back.
	branch, err := branchOf(ctx, c.r.File, func(b []byte) (links, error) {
		var l qwenLink
		var about struct {
			Subtype string `json:"subtype"`
		}
		err := first(b, &l)
		if err == nil && l.Kind == "system" {
			err = first(b, &about)
		}
		tip := l.Kind != "system" || about.Subtype == "rewind"
		return links{id: l.ID, parent: text(l.Parent), rooted: l.Parent != nil, tip: tip}, err
	})
	if err != nil {
		return err
	}
	q := &qwenReader{conversation: c, branch: branch}
	return q.eachLine(ctx, q.line)
}

// A qwenLink is what a line says of its place.
type qwenLink struct {
	ID     string `json:"uuid"`
	Parent []byte `json:"parentUuid"`
	Kind   string `json:"type"`
}

// A qwenLine is one line.
type qwenLine struct {
	qwenLink
	Subtype   string `json:"subtype"`
	Session   string `json:"sessionId"`
	Version   string `json:"version"`
	Model     string `json:"model"`
	Agent     string `json:"agentId"`
	Sidechain bool   `json:"isSidechain"`
	Message   struct {
		Parts []byte `json:"parts"`
	} `json:"message"`
	Payload []byte `json:"systemPayload"`
	Usage   tokens `json:"usageMetadata"`
	Result  struct {
		Status string `json:"status"`
		Call   string `json:"callId"`
	} `json:"toolCallResult"`
}

// parts gives the parts of the message to do.
func (l *qwenLine) parts(do func(p *geminiPart)) {
	if len(l.Message.Parts) > 0 && l.Message.Parts[0] == '[' {
		_ = each(l.Message.Parts, do)
	}
}

// A qwenReader turns the records of a branch into events.
type qwenReader struct {
	*conversation
	branch *tree
	entry  int
}

func (q *qwenReader) line(b []byte, n int) error {
	var l qwenLine
	if err := decode(b, &l); err != nil {
		return err
	}
	q.entry++
	q.open(&l)
	switch {
	case l.Kind == "system":
		q.system(&l, n)
	case !q.branch.has(q.entry - 1):
		q.r.skip("records on a branch that was left", "the conversation is the branch that the last message stands on", n)
	case l.Kind == "user":
		q.user(&l, n)
	case l.Kind == "assistant":
		q.assistant(&l)
	case l.Kind == "tool_result":
		q.given(&l, n)
	default:
		q.r.skip("records of type "+l.Kind, "unknown", n)
	}
	return nil
}

// open takes over what the first record says of the session.
func (q *qwenReader) open(l *qwenLine) {
	if q.d != nil {
		return
	}
	id := l.Session
	q.r.Session, q.r.Version = l.Session, l.Version
	if l.Sidechain && l.Agent != "" {
		id = l.Agent
		q.r.note("this is what the sub-agent %s did", l.Agent)
	}
	if q.branch.orphan {
		q.r.note("a record names a parent that is not there; the branch begins at it")
	}
	q.begin(id, "gemini")
}

// system is what the program says of itself: of this a failed request of the conversation's own counts alone.
func (q *qwenReader) system(l *qwenLine, n int) {
	switch l.Subtype {
	case "ui_telemetry":
		if bytes.Contains(l.Payload, []byte(`"qwen-code.api_error"`)) && bytes.Contains(l.Payload, []byte("########")) {
			q.reason = sessionlog.ReasonError
		}
		q.r.skip("records of telemetry", "say again what the messages say, and what sub-agents did", n)
	case "chat_compression":
		if q.branch.has(q.entry - 1) {
			q.compressed("chat_compression", "")
		} else {
			q.r.skip("compressions on a branch that was left", "the conversation went on without them", n)
		}
	case "rewind":
		q.r.skip("records of going back", "the branch that was left is told apart by them", n)
	default:
		q.r.skip("system records of type "+l.Subtype, "about the program, no part of the conversation", n)
	}
}

// user is a prompt, or what the program says in the person's name.
func (q *qwenReader) user(l *qwenLine, n int) {
	if l.Subtype != "" && l.Subtype != "mid_turn_user_message" {
		q.r.skip("messages in the person's name of type "+l.Subtype, "the program said them", n)
		return
	}
	var goal []string
	e := &sessionlog.RunStarted{}
	l.parts(func(p *geminiPart) {
		if said, ok := p.said(); ok && !isReminder(said) {
			goal = append(goal, said)
		} else if p.Whole[0] == '{' {
			e.Attachments = append(e.Attachments, owned(p.Whole))
		}
	})
	e.Goal = strings.Join(goal, "\n")
	q.ask(e)
}

// isReminder reports whether a text is one that the program puts before a prompt.
func isReminder(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>")
}

// assistant is a turn, or in a sub-agent's file a piece of one.
func (q *qwenReader) assistant(l *qwenLine) {
	if !l.Sidechain {
		q.flush()
	}
	a := q.saying()
	q.reason = ""
	if l.Model != "" {
		a.model = l.Model
	}
	a.tokens += l.Usage.Total
	l.parts(func(p *geminiPart) {
		said, isText := p.said()
		switch {
		case p.Call != nil:
			a.call(p.Call.ID, p.Call.Name, p.Call.Args)
		case p.Thought:
			a.think(said, p.Whole)
		case isText:
			a.text(said)
		default:
			a.block(p.Whole)
		}
	})
}

// given is what came of one call, or of more in older sessions.
func (q *qwenReader) given(l *qwenLine, n int) {
	some := false
	l.parts(func(p *geminiPart) {
		if p.Given == nil {
			q.r.skip("parts beside a result", "the result is what the tool gave", n)
			return
		}
		some = true
		r := p.Given.result()
		if r.CallID == "" {
			r.CallID = l.Result.Call
		}
		r.IsError = r.IsError || l.Result.Status == "error" || l.Result.Status == "cancelled"
		q.result(r)
	})
	if !some {
		q.r.skip("results without a result", "unknown", n)
	}
}

// result is what a tool gave, with its images.
func (f *geminiFunction) result() sessionlog.ToolResult {
	r := sessionlog.ToolResult{CallID: f.ID, Output: sessionlog.Text("")}
	var one []byte
	if one, r.IsError = f.only(); one != nil {
		r.Output = owned(one)
	} else if f.Response != nil {
		r.Output = owned(f.Response)
	}
	if len(f.Parts) > 2 && f.Parts[0] == '[' {
		r.Output = textAnd(`{"text":`, r.Output, f.Parts)
	}
	return r
}
