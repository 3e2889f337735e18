package foreign

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// opencode reads the sessions of opencode in each of the three forms that it writes: its database ~/.local/share/opencode/opencode.db
// (from 1.2 on), the files below ~/.local/share/opencode/storage before that, and what "opencode export" prints.
//
// A session is a list of messages, and a message a list of parts. The assistant's parts are cut into answers where a step begins:
// one a message now, several in older versions. A tool's part holds the call and what came of it. A sub-agent's session is one of
// its own: where a database or folder holds several sessions, the one that changed last is read, or that which PATH#SESSION names.
//
// What a command's exit status was stands in its output alone, as the model sees it. A call of a tool that does not exist is
// kept by opencode as one of its own tool "invalid". Titles and summaries are no turns. What the person took back is left out.
var opencode = Importer{name: "opencode", looks: looksOpencode, read: readOpencode}

const sqliteMagic = "SQLite format 3\x00"

var (
	opencodeExport  = lazyregexp.New(`^\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses_`)
	opencodeSession = lazyregexp.New(`^\s*\{\s*"id"\s*:\s*"ses_[0-9A-Za-z]+"`)
	opencodeID      = lazyregexp.New(`^(ses|msg|prt)_[0-9A-Za-z]+$`)
)

func looksOpencode(path string, head []byte) bool {
	switch {
	case head == nil:
		return isFile(filepath.Join(path, opencodeDB)) || opencodeStorage(path) != ""
	case bytes.HasPrefix(head, []byte(sqliteMagic)):
		return strings.HasPrefix(filepath.Base(path), "opencode")
	}
	return opencodeExport.Match(head) || opencodeSession.Match(head)
}

const opencodeDB = "opencode.db"

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// chosen cuts the session that PATH#SESSION names off a path, unless a file of that whole name is there.
func chosen(path string) (file, session string) {
	at := strings.LastIndexByte(path, '#')
	if at < 0 || !opencodeID.MatchString(path[at+1:]) {
		return path, ""
	}
	if _, err := os.Lstat(path); err == nil {
		return path, ""
	}
	return path[:at], path[at+1:]
}

// readOpencode reads a session out of a database, a folder or a file.
func readOpencode(ctx context.Context, c *conversation) error {
	path, session := chosen(c.r.File)
	c.r.File = path
	o := &opencodeReader{conversation: c}
	err := o.read(ctx, path, session)
	if fault, ok := errors.AsType[broken](err); ok {
		err = &Error{Path: c.r.File, Err: fault.error}
	}
	return err
}

// An opencodeReader turns messages and their parts into events. A message is begun by message, gets its parts by part, and is
// ended by messageEnd.
type opencodeReader struct {
	*conversation
	revert string
	undone bool   // the messages from here on were taken back
	id     string // of the message, where it does not say so itself
	now    opencodeMessage
}

// read finds out which of the forms path has.
func (o *opencodeReader) read(ctx context.Context, path, session string) error {
	head, err := headOf(path)
	switch {
	case err != nil:
		return err
	case head == nil && isFile(filepath.Join(path, opencodeDB)):
		o.r.File = filepath.Join(path, opencodeDB)
		return o.database(ctx, o.r.File, session)
	case head == nil:
		if storage := opencodeStorage(path); storage != "" {
			return o.folder(ctx, storage, session)
		}
		return &Error{Path: path, Err: errors.New("expected a folder with opencode.db or storage/session in it")}
	case bytes.HasPrefix(head, []byte(sqliteMagic)):
		return o.database(ctx, path, session)
	case opencodeExport.Match(head):
		return eachElement(ctx, o.r, "messages", "message", o.about, o.exported)
	case opencodeSession.Match(head):
		return o.file(ctx, path)
	}
	return &Error{Path: path, Err: errors.New(`expected an SQLite database, a session file, or {"info":…,"messages":[…]}`)}
}

// about reads a key beside the messages of what opencode export prints: {info, messages: [{info, parts}]}.
func (o *opencodeReader) about(key string, s *jsonscan.Stream) error {
	if key != "info" {
		return nil
	}
	var info opencodeInfo
	if err := small(s, &info); err != nil || s.Err() != nil {
		return err
	}
	o.open(&info)
	return nil
}

// exported reads one message with its parts.
func (o *opencodeReader) exported(b []byte, _ int) error {
	var m struct {
		Info  []byte `json:"info"`
		Parts []byte `json:"parts"`
	}
	if err := decode(b, &m); err != nil {
		return err
	}
	if m.Info == nil {
		return broken{errors.New(`expected a message's "info"`)}
	}
	more, err := o.message(m.Info)
	if err != nil || !more {
		return err
	}
	if len(m.Parts) > 0 && m.Parts[0] == '[' {
		if err := o.parts(m.Parts); err != nil {
			return err
		}
	}
	o.messageEnd()
	return o.failed
}

// An opencodeInfo is what opencode says of a session.
type opencodeInfo struct {
	ID      string `json:"id"`
	Parent  string `json:"parentID"`
	Version string `json:"version"`
	Revert  struct {
		Message string `json:"messageID"` // the first one that the person took back, "" for none
	} `json:"revert"`
	Time struct {
		Updated int64 `json:"updated"` // ms since 1970
	} `json:"time"`

	file string // of a session that stands in one of its own
}

// open begins the conversation with the first that is known of it.
func (o *opencodeReader) open(info *opencodeInfo) {
	if o.d != nil {
		return
	}
	o.r.Session, o.r.Version, o.revert = info.ID, info.Version, info.Revert.Message
	if info.Parent != "" {
		o.r.note("this is what a sub-agent of %s did", info.Parent)
	}
	o.begin(info.ID, "opencode")
}

// An opencodeMessage is the message under way.
type opencodeMessage struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Model   string `json:"modelID"`
	Tokens  tokens `json:"tokens"`
	Summary bool   `json:"summary"` // of what was said so far, no answer
	Fault   *struct {
		Name string `json:"name"`
	} `json:"error"`
	Time struct {
		Completed int64 `json:"completed"`
	} `json:"time"`

	goal        []string // of a prompt
	attachments []json.RawMessage
	program     bool // the program said something in the person's name

	step   answer
	some   bool // the step has begun
	steps  int
	given  []sessionlog.ToolResult
	agents []sessionlog.Event // what became of sub-agents
}

// ends is why the run ends, where the message is its last; "" where nothing says so.
func (m *opencodeMessage) ends() string {
	switch {
	case m.Fault != nil && m.Fault.Name != "MessageAbortedError":
		return sessionlog.ReasonError
	case m.Fault != nil || m.Time.Completed <= 0:
		return sessionlog.ReasonInterrupted
	}
	return ""
}

// message begins a message. more is false where its parts do not count.
func (o *opencodeReader) message(b []byte) (more bool, err error) {
	m := opencodeMessage{ID: o.id}
	if err := decode(b, &m); err != nil {
		return false, err
	}
	o.open(&opencodeInfo{})
	if o.undone = o.undone || o.revert != "" && m.ID == o.revert; o.undone {
		o.r.skip("messages that the person took back", "the conversation went on without them", 0)
		return false, nil
	}
	if m.Role != "assistant" && m.Role != "user" {
		o.r.skip("messages of "+m.Role, "unknown", 0)
		return false, nil
	}
	o.now = m
	return true, nil
}

// messageEnd ends a message: a prompt, or the last step of an answer.
func (o *opencodeReader) messageEnd() {
	switch m := &o.now; {
	case m.Role == "user" && m.program && len(m.goal) == 0 && len(m.attachments) == 0:
		o.r.skip("messages in the person's name", "the program said them", 0)
	case m.Role == "user":
		o.ask(&sessionlog.RunStarted{Goal: strings.Join(m.goal, "\n"), Attachments: m.attachments})
	case m.Summary:
		o.compressed("compaction", strings.Join(m.step.texts, "\n"))
	default:
		o.step(m.steps == 0)
		o.reason = m.ends()
	}
}

// step ends a step, and begins another one. An answer of which nothing came counts where all is true.
func (o *opencodeReader) step(all bool) {
	m := &o.now
	if m.Summary || !m.some && !all {
		return
	}
	if m.steps++; m.step.tokens == 0 && m.steps == 1 {
		m.step.tokens = m.Tokens.sum()
	}
	a, given, agents := m.step, m.given, m.agents
	a.model = m.Model
	m.step, m.given, m.agents, m.some = answer{}, nil, nil, false
	o.turn(&a, "")
	for _, r := range given {
		o.result(r)
	}
	o.after = append(o.after, agents...)
}

// An opencodePart is one part of a message.
type opencodePart struct {
	Kind      string       `json:"type"`
	Text      string       `json:"text"`
	Call      string       `json:"callID"`
	Tool      string       `json:"tool"`
	Synthetic bool         `json:"synthetic"`
	Ignored   bool         `json:"ignored"`
	Tokens    tokens       `json:"tokens"`
	State     opencodeTool `json:"state"`
	Whole     []byte       `json:"*"`
}

// An opencodeTool is a call, and what came of it.
type opencodeTool struct {
	Status   string `json:"status"`
	Input    []byte `json:"input"`
	Output   []byte `json:"output"`
	Fault    []byte `json:"error"`
	Files    []byte `json:"attachments"`
	Metadata struct {
		Session string `json:"sessionId"`
	} `json:"metadata"`
}

var opencodeParts = map[string]string{
	"snapshot": "the state of the work tree", "patch": "the state of the work tree", "retry": "a request that was made again",
	"compaction": "a mark where a summary was made", "agent": "a name that the person gave; the prompt holds it",
}

// parts adds a part, or a list of them, to the message under way.
func (o *opencodeReader) parts(b []byte) error { return cmp.Or(each(b, o.part), o.failed) }

// part adds a part to the message under way.
func (o *opencodeReader) part(p *opencodePart) {
	m := &o.now
	if p.Whole[0] != '{' {
		o.failed = cmp.Or(o.failed, error(broken{errors.New("expected a part that is an object")}))
		return
	}
	if m.Role == "user" {
		o.asked(p)
		return
	}
	switch p.Kind {
	case "step-start":
		o.step(false)
		return
	case "step-finish":
		m.step.tokens += p.Tokens.sum()
		o.step(false)
		return
	case "text":
		m.step.text(p.Text)
	case "reasoning":
		m.step.think(p.Text, p.Whole)
	case "tool":
		o.tool(p)
	case "file":
		m.step.block(p.Whole)
	default:
		o.r.skipKind("parts of type ", p.Kind, opencodeParts, 0)
		return
	}
	m.some = true
}

// asked adds a part of a prompt.
func (o *opencodeReader) asked(p *opencodePart) {
	m := &o.now
	switch {
	case p.Ignored:
		o.r.skip("texts that the model does not get", "no part of the conversation", 0)
	case p.Kind == "text" && p.Synthetic:
		m.program = true
		o.r.skip("texts in the person's name", "the program said them", 0)
	case p.Kind == "text":
		m.goal = append(m.goal, p.Text)
	case p.Kind == "file" || p.Kind == "subtask":
		m.attachments = append(m.attachments, owned(p.Whole))
	default:
		m.program = true
		o.r.skipKind("parts of type ", p.Kind, opencodeParts, 0)
	}
}

// opencodeAgents are the states of sub-agents by the status of the call that began them.
var opencodeAgents = map[string]string{"pending": agentRunning, "running": agentRunning, "completed": agentJoined, "error": "failed"}

// tool adds a call, and what came of it.
func (o *opencodeReader) tool(p *opencodePart) {
	t := &p.State
	o.now.step.call(p.Call, p.Tool, t.Input)
	if agent := t.Metadata.Session; p.Tool == "task" && agent != "" {
		o.now.agents = append(o.now.agents, &sessionlog.AgentProcessChanged{
			AgentID: agent, ParentSessionID: o.r.Session, Role: textIn(t.Input, "subagent_type"), State: opencodeAgents[t.Status],
		})
	}
	if t.Status != "completed" && t.Status != "error" {
		return // it never ended
	}
	r := sessionlog.ToolResult{CallID: p.Call, IsError: t.Fault != nil, Output: sessionlog.Text("")}
	if t.Fault != nil {
		r.Output = owned(t.Fault)
	} else if t.Output != nil {
		r.Output = owned(t.Output)
	}
	if len(t.Files) > 2 && t.Files[0] == '[' {
		r.Output = textAnd(`{"type":"text","text":`, r.Output, t.Files)
	}
	o.now.given = append(o.now.given, r)
}
