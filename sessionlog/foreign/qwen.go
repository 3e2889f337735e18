package foreign

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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
type qwen struct{}

func (qwen) Name() string { return "qwen-code" }

func (qwen) Looks(path string, head []byte) bool {
	if head == nil {
		dir := filepath.Base(filepath.Dir(path))
		return filepath.Base(path) == "projects" && dir == ".qwen" || filepath.Base(path) == ".qwen"
	}
	return headLines(head, func(s *jsonscan.Scanner) bool {
		var l qwenLine
		l.read(s)
		return s.Err() == nil && l.id && l.session != "" && (l.provenance || l.payload != nil || hasParts(l.message))
	})
}

// hasParts reports whether a message is in Gemini's form.
func hasParts(message []byte) bool {
	var s jsonscan.Scanner
	s.Reset(message)
	if s.Peek() != '{' {
		return false
	}
	for s.Begin('{'); s.More('}'); s.Skip() {
		if string(s.Key()) == "parts" {
			return s.Peek() == '['
		}
	}
	return false
}

// Import reads a session, or the newest one below a folder.
func (qwen) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport("qwen-code", path)
	err := newest(r, path, func(name string) bool {
		return isUUID(strings.TrimSuffix(name, ".jsonl")) && strings.HasSuffix(name, ".jsonl")
	})
	if err != nil {
		return r, err
	}
	branch, err := branchOf(ctx, r.File, qwenLinks)
	if err != nil {
		return r, err
	}
	q := &qwenReader{r: r, emit: emit, branch: branch}
	err = eachLine(ctx, r.File, r, q.line)
	return r, r.ended(q.chat, err)
}

// A qwenLine is one line.
type qwenLine struct {
	id, provenance                          bool
	kind, subtype, session, version, model  string
	agent                                   string
	message, payload, usage, result, parent []byte
	sidechain                               bool
}

// qwenLinks reads what makes the tree. Records about the program may stand beside it; a conversation ends with none of them but
// one that goes back.
func qwenLinks(s *jsonscan.Scanner, l *links) {
	kind, subtype := "", ""
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "uuid":
			l.id = text(s)
		case "parentUuid":
			l.parent, l.rooted = text(s), true
		case "type":
			kind = text(s)
		case "subtype":
			subtype = text(s)
		default:
			s.Skip()
		}
		if l.id != "" && l.rooted && kind != "" && (kind != "system" || subtype != "") {
			break
		}
	}
	l.tip = kind != "system" || subtype == "rewind"
}

func (l *qwenLine) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "uuid":
			l.id = s.Peek() == '"'
			s.Skip()
		case "parentUuid":
			l.parent = s.Raw()
		case "sessionId":
			l.session = text(s)
		case "type":
			l.kind = text(s)
		case "subtype":
			l.subtype = text(s)
		case "version":
			l.version = text(s)
		case "provenance":
			l.provenance = true
			s.Skip()
		case "model":
			l.model = text(s)
		case "agentId":
			l.agent = text(s)
		case "isSidechain":
			l.sidechain = isTrue(s)
		case "message":
			l.message = s.Raw()
		case "systemPayload":
			l.payload = s.Raw()
		case "usageMetadata":
			l.usage = s.Raw()
		case "toolCallResult":
			l.result = s.Raw()
		default:
			s.Skip()
		}
	}
	_ = s.End()
}

// A qwenReader turns the records of a branch into events.
type qwenReader struct {
	r      *Report
	emit   func(sessionlog.Event) error
	branch *tree
	chat   *chat
	entry  int
	inner  jsonscan.Scanner
}

func (q *qwenReader) line(s *jsonscan.Scanner, n int) error {
	var l qwenLine
	if l.read(s); s.Err() != nil {
		return broken{s.Err()}
	}
	q.entry++
	q.begin(&l)
	if l.kind == "system" {
		return q.system(&l, n)
	}
	if !q.branch.has(q.entry - 1) {
		q.r.skip("records on a branch that was left", "the conversation is the branch that the last message stands on", n)
		return nil
	}
	switch l.kind {
	case "user":
		return q.user(&l, n)
	case "assistant":
		return q.assistant(&l)
	case "tool_result":
		return q.results(&l, n)
	}
	q.r.skip("records of type "+l.kind, "unknown", n)
	return nil
}

// begin takes over what the first record says of the session.
func (q *qwenReader) begin(l *qwenLine) {
	if q.chat != nil {
		return
	}
	id := l.session
	q.r.Session, q.r.Version = l.session, l.version
	if l.sidechain && l.agent != "" {
		id = l.agent
		q.r.note("this is what the sub-agent %s did", l.agent)
	}
	if q.branch.orphan {
		q.r.note("a record names a parent that is not there; the branch begins at it")
	}
	q.chat = newChat(q.r, id, "gemini", q.emit)
}

const qwenOwn = "about the program, no part of the conversation"

// system is what the program says of itself: of this a failed request of the conversation's own counts alone.
func (q *qwenReader) system(l *qwenLine, n int) error {
	switch l.subtype {
	case "ui_telemetry":
		if bytes.Contains(l.payload, []byte(`"qwen-code.api_error"`)) && bytes.Contains(l.payload, []byte("########")) {
			q.chat.reason = sessionlog.ReasonError
		}
		q.r.skip("records of telemetry", "say again what the messages say, and what sub-agents did", n)
	case "chat_compression":
		if q.branch.has(q.entry - 1) {
			return q.chat.compressed("chat_compression", "")
		}
		q.r.skip("compressions on a branch that was left", "the conversation went on without them", n)
	case "rewind":
		q.r.skip("records of going back", "the branch that was left is told apart by them", n)
	default:
		q.r.skip("system records of type "+l.subtype, qwenOwn, n)
	}
	return nil
}
