package foreign

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// gemini reads the sessions of gemini-cli, ~/.gemini/tmp/PROJECT/chats/session-*: lines (.jsonl) or, before 2026, one object
// {sessionId, messages} (.json); and its checkpoints (/chat save), a list of contents as the API has them, or {history}.
//
// A message is written again, under its id, whenever something of it is new: its tool calls with what they gave. The last form
// of it counts, and the place of the first. {"$rewindTo": id} takes back all from that message on: what was taken back is
// counted. {"$set": {"messages"}} is the history as the model gets it from there on, made anew when a session is resumed or made
// shorter: what is new in it is no turn.
//
// Results stand twice, with their call and as the user's message that brings them to the model: the first counts. Older API
// answers have no ids for calls; checkpoints then number them, call_1 first.
//
// A file of lines is read twice, once for what was taken back. Memory is one line, one message, and about 50 bytes a message.
var gemini = Importer{name: "gemini-cli", looks: looksGemini, read: readGeminiFile,
	wanted: func(name string) bool {
		return strings.HasPrefix(name, "session-") && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".json"))
	},
	suits: func(head []byte) bool { // every start makes a file, though an older session goes on
		return len(head) == HeadSize || geminiSaid.Match(head)
	},
}

var (
	geminiSaid       = lazyregexp.New(`"type"\s*:\s*"gemini"`)
	geminiObject     = lazyregexp.New(`^\s*\{\s*"(sessionId|projectHash)"\s*:`)
	geminiCheckpoint = lazyregexp.New(`^\s*(\{\s*"history"\s*:\s*)?\[\s*\{\s*"(role"\s*:\s*"(user|model)"|parts"\s*:)`)
)

func looksGemini(_ string, head []byte) bool {
	head = withoutMark(head)
	return geminiObject.Match(head) && strings.Contains(string(head), `"projectHash"`) || geminiCheckpoint.Match(head)
}

func readGeminiFile(ctx context.Context, c *conversation) error {
	r := c.r
	head, err := headOf(r.File)
	if err != nil {
		return err
	}
	g := &geminiReader{conversation: c, seen: map[uint64]bool{}, seed: maphash.MakeSeed()}
	switch {
	case geminiCheckpoint.Match(withoutMark(head)):
		none := func(string, *jsonscan.Stream) error { return nil }
		err = eachElement(ctx, r, "history", "element", none, func(b []byte, n int) error { return cmp.Or(g.content(b, n), g.failed) })
	case isLines(head):
		if err = walk(ctx, r.File, newReport("", r.File), g.plan); err == nil {
			err = g.eachLine(ctx, g.line)
		}
	default:
		err = eachElement(ctx, r, "messages", "element", g.about, func(b []byte, n int) error { return cmp.Or(g.message(b, n), g.failed) })
	}
	if err == nil {
		g.ignored()
	}
	return err
}

// isLines reports whether the first line of a head is a value by itself that holds no messages.
func isLines(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(withoutMark(head), " \t\r\n"), []byte("\n"))
	var l struct {
		Messages []byte `json:"messages"`
	}
	return len(line) > 0 && line[0] == '{' && decode(line, &l) == nil && l.Messages == nil
}

// A geminiReader turns messages into events.
type geminiReader struct {
	*conversation
	seed maphash.Seed

	places []uint64        // first reading: messages that stand, in order
	gone   map[uint64]bool // messages that were taken back
	back   map[int]bool    // lines that took something back

	seen    map[uint64]bool // messages that were met
	current uint64          // the answer that is gathered

	given int // calls of a checkpoint that were given an id
	open  []geminiCall
}

// A geminiCall is a call of the last answer of a checkpoint.
type geminiCall struct {
	name, id string
	done     bool
}

// A geminiRecord is one line or message.
type geminiRecord struct {
	ID       string         `json:"id"`
	Kind     string         `json:"type"`
	Agent    string         `json:"kind"`
	Session  string         `json:"sessionId"`
	Model    string         `json:"model"`
	Content  []byte         `json:"content"`
	Calls    []geminiTool   `json:"toolCalls"`
	Thoughts []geminiIdea   `json:"thoughts"`
	Tokens   tokens         `json:"tokens"`
	Rewind   []byte         `json:"$rewindTo"`
	Set      *geminiHistory `json:"$set"`
}

// A geminiHistory is a history that was made anew.
type geminiHistory struct {
	Messages []byte `json:"messages"`
}

// A geminiIdea is a thought that stands apart from the content.
type geminiIdea struct {
	Subject string `json:"subject"`
	What    string `json:"description"`
}

// A geminiTool is a call that stands with an answer, and what it gave.
type geminiTool struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Args   []byte `json:"args"`
	Result []byte `json:"result"`
	Status string `json:"status"`
	Whole  []byte `json:"*"`
}

func (g *geminiReader) hash(id string) uint64 { return maphash.String(g.seed, id) }

// plan finds what was taken back.
func (g *geminiReader) plan(b []byte, n int) error {
	var m struct {
		ID string `json:"id"`
	}
	var back struct {
		To maybe `json:"$rewindTo"`
	}
	if first(b, &m) != nil || m.ID == "" && first(b, &back) != nil {
		return nil // line says so
	}
	if !back.To.some {
		if id := g.hash(m.ID); m.ID != "" && (len(g.places) == 0 || g.places[len(g.places)-1] != id) {
			g.places = append(g.places, id)
		}
		return nil
	}
	at := len(g.places) - 1
	for id := g.hash(back.To.text); at >= 0 && g.places[at] != id; {
		at--
	}
	if at < 0 {
		return nil // of a message that is not here; line says so
	}
	if g.gone == nil {
		g.gone, g.back = map[uint64]bool{}, map[int]bool{}
	}
	g.back[n] = true
	for _, id := range g.places[at:] {
		g.gone[id] = true
	}
	g.places = g.places[:at]
	return nil
}

// line reads one line.
func (g *geminiReader) line(b []byte, n int) error {
	g.places = nil
	var m geminiRecord
	if err := decode(b, &m); err != nil {
		return err
	}
	switch {
	case m.Rewind != nil && g.back[n]:
		g.r.note("line %d: the person went back: what was taken back is counted as skipped", n)
	case m.Rewind != nil:
		g.r.note("line %d: the person went back to a message that is not there: nothing was taken back", n)
	case m.ID != "":
		g.record(&m, n)
	case m.Set != nil:
		return g.history(m.Set.Messages, n)
	case m.Session != "":
		g.start(m.Session, m.Agent)
	default:
		g.r.skip("lines of no known form", "unknown", n)
	}
	return nil
}

// about reads a key of the object that an old session is.
func (g *geminiReader) about(key string, s *jsonscan.Stream) error {
	switch key {
	case "sessionId":
		g.start(text(s.Raw()), "")
	case "kind":
		g.ofAgent(text(s.Raw()))
	}
	return nil
}

// start begins the conversation with the first that is known of it.
func (g *geminiReader) start(id, kind string) {
	g.ofAgent(kind)
	if g.d == nil {
		g.r.Session = id
		g.begin(id, "gemini")
	}
}

func (g *geminiReader) ofAgent(kind string) {
	if kind == "subagent" {
		g.r.note("this is the session of a sub-agent")
	}
}

// history is the history as it was made anew. The first one of a session, before anything was said, is read as what it is.
func (g *geminiReader) history(messages []byte, n int) error {
	if len(messages) == 0 || messages[0] != '[' {
		return nil
	}
	again := g.prompted
	if again { // what it says of the last answer is less than what came
		g.flush()
	}
	return each(messages, func(m *geminiRecord) {
		if id := g.hash(m.ID); again && !g.seen[id] {
			g.seen[id] = true
			g.r.skip("messages of a history that was made anew", "what the model gets from there on; nobody said them there", n)
			return
		}
		g.record(m, n)
	})
}

// message reads one message of the object that an old session is.
func (g *geminiReader) message(b []byte, n int) error {
	var m geminiRecord
	if err := decode(b, &m); err != nil {
		return err
	}
	g.record(&m, n)
	return nil
}

// record reads one message, or what is new in it.
func (g *geminiReader) record(m *geminiRecord, n int) {
	g.start("", "")
	id := g.hash(m.ID)
	if g.gone[id] {
		g.r.skip("messages that were taken back", "the person went back and asked anew", n)
		return
	}
	again := m.ID != "" && g.seen[id]
	g.seen[id] = true
	switch {
	case m.Kind == "gemini" && again && (id != g.current || !g.answer.some):
		g.tools(m, false)
	case m.Kind == "gemini":
		g.model(m, id)
	case again:
	case m.Kind == "user":
		g.user(readGemini(m.Content), n)
	case m.Kind == "error":
		g.r.note("line %d: the program says that a turn failed", n)
		g.end(sessionlog.ReasonError)
	default:
		g.r.skipKind("messages of type ", m.Kind, geminiNotices, n)
	}
}

var geminiNotices = map[string]string{"info": "what the program told the person", "warning": "what the program told the person"}

// model reads an answer, in the form that it has so far: a later one of the same message replaces it.
func (g *geminiReader) model(m *geminiRecord, id uint64) {
	if id != g.current || !g.answer.some {
		g.flush()
		g.commanded()
	}
	p := readGemini(m.Content)
	a := &g.answer
	g.current, *a = id, answer{some: true, model: m.Model, tokens: m.Tokens.Total}
	a.add(p.parts)
	for _, t := range p.thoughts {
		a.think(t, nil)
	}
	for _, t := range m.Thoughts {
		if t.Subject != "" {
			t.What = "**" + t.Subject + "** " + t.What
		}
		a.think(t.What, nil)
	}
	if a.calls = g.tools(m, true); len(a.calls) == 0 {
		a.calls = p.calls
	}
}

// tools reads the calls that stand with an answer. Their results are held; of an answer that was passed on already calls and
// results that are new are given at once.
func (g *geminiReader) tools(m *geminiRecord, current bool) (calls []sessionlog.ToolCall) {
	var results []sessionlog.ToolResult
	for i := range m.Calls {
		t := &m.Calls[i]
		if t.Whole[0] != '{' {
			continue
		}
		calls = append(calls, sessionlog.ToolCall{ID: t.ID, Name: t.Name, Arguments: arguments(t.Args)})
		if r := t.given(); r != nil {
			results = append(results, *r)
		}
	}
	if m.Calls != nil && !current {
		g.flush()
		_ = g.d.Request(calls, nil)
	}
	for _, r := range results {
		g.hold(r)
	}
	return calls
}

// given is what a call gave; nil for nothing yet.
func (t *geminiTool) given() *sessionlog.ToolResult {
	p := readGemini(t.Result)
	var r sessionlog.ToolResult
	switch {
	case len(p.results) > 0:
		if r = p.results[0]; p.others != nil { // pictures beside it
			r.Output = owned(t.Result)
		}
	case len(p.texts) > 0:
		r.Output = sessionlog.Text(p.goal())
	default:
		return nil
	}
	r.CallID, r.IsError = t.ID, r.IsError || t.Status == "error" || t.Status == "cancelled"
	return &r
}

// user reads a prompt, or what tools gave.
func (g *geminiReader) user(p *geminiParts, n int) {
	for _, r := range p.results {
		g.hold(r)
	}
	goal := strings.TrimSpace(p.goal())
	switch {
	case len(p.results) > 0:
		if goal != "" {
			g.r.skip("texts beside what tools gave", "what the program gives the model along", n)
		}
	case goal == "" && len(p.others) == 0:
	case trimmedPrefix(goal, "<session_context>", "<hook_context>"):
		g.r.skip("messages of user", claudeOwn, n)
	case trimmedPrefix(goal, "/", "?"):
		g.ignored()
		g.typed = command{p.goal(), n}
	default:
		g.ignored()
		g.ask(&sessionlog.RunStarted{Goal: p.goal(), Attachments: p.others})
	}
}

// content reads one content of a checkpoint.
func (g *geminiReader) content(b []byte, n int) error {
	var c struct {
		Role  string `json:"role"`
		Parts []byte `json:"parts"`
	}
	if b[0] != '{' {
		g.r.skip("elements that are no content", "unknown", n)
		return nil
	}
	if err := decode(b, &c); err != nil {
		return err
	}
	g.start("", "")
	p := readGemini(c.Parts)
	if c.Role != "model" {
		g.pair(p.results, p.names)
		g.user(p, n)
		return nil
	}
	if !g.prompted && g.typed.text == "" && len(p.calls) == 0 {
		g.r.skip("answers before the first prompt", "the program's own, in the model's name", n)
		return nil
	}
	g.commanded()
	a := g.saying()
	g.open = g.open[:0]
	for i := range p.calls {
		if p.calls[i].ID == "" {
			g.given++
			p.calls[i].ID = "call_" + strconv.Itoa(g.given)
		}
		g.open = append(g.open, geminiCall{name: p.calls[i].Name, id: p.calls[i].ID})
	}
	a.add(p.parts)
	for _, t := range p.thoughts {
		a.think(t, nil)
	}
	a.calls = append(a.calls, p.calls...)
	return nil
}

// pair gives results without an id that of the first call of their tool which has none yet.
func (g *geminiReader) pair(results []sessionlog.ToolResult, names []string) {
	for i := range results {
		r := &results[i]
		at := slices.IndexFunc(g.open, func(c geminiCall) bool {
			return !c.done && (r.CallID == c.id || r.CallID == "" && names[i] == c.name)
		})
		if at >= 0 {
			r.CallID, g.open[at].done = g.open[at].id, true
		}
	}
}

// A geminiPart is one part of a content in Gemini's form, which qwen-code writes too.
type geminiPart struct {
	Text    maybe           `json:"text"`
	Thought bool            `json:"thought"`
	Call    *geminiFunction `json:"functionCall"`
	Given   *geminiFunction `json:"functionResponse"`
	Whole   []byte          `json:"*"`
}

// A geminiFunction is a call, or what came of it.
type geminiFunction struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Args     []byte `json:"args"`
	Response []byte `json:"response"`
	Parts    []byte `json:"parts"` // what is no text: images
}

// said is the text of a part; ok is false where it has none.
func (p *geminiPart) said() (said string, ok bool) {
	if p.Whole[0] == '"' {
		return text(p.Whole), true
	}
	return p.Text.text, p.Text.some
}

// only is the one thing that a response says, under "output" or "error"; nil where it says others too.
func (f *geminiFunction) only() (one []byte, failed bool) {
	if len(f.Response) == 0 || f.Response[0] != '{' {
		return nil, false
	}
	var s jsonscan.Scanner
	s.Reset(f.Response)
	n := 0
	for s.Begin('{'); s.More('}'); n++ {
		key := string(s.Key())
		if raw := s.Raw(); key == "error" || key == "output" {
			one, failed = raw, failed || key == "error"
		}
	}
	if n != 1 {
		one = nil
	}
	return one, failed
}

// geminiParts is a content: texts and other blocks, thoughts, calls and results.
type geminiParts struct {
	parts
	thoughts []string
	calls    []sessionlog.ToolCall
	results  []sessionlog.ToolResult
	names    []string // of the tools, one a result
}

// readGemini reads a content: a text, a part, or a list of either.
func readGemini(content []byte) *geminiParts {
	p := &geminiParts{}
	_ = each(content, p.add)
	return p
}

func (p *geminiParts) add(q *geminiPart) {
	said, isText := q.said()
	switch {
	case string(q.Whole) == "null":
	case q.Call != nil:
		args := json.RawMessage("{}")
		if len(q.Call.Args) > 0 && q.Call.Args[0] == '{' {
			args = owned(q.Call.Args)
		}
		p.calls = append(p.calls, sessionlog.ToolCall{ID: q.Call.ID, Name: q.Call.Name, Arguments: args})
	case q.Given != nil:
		one, failed := q.Given.only()
		r := sessionlog.ToolResult{CallID: q.Given.ID, IsError: failed}
		switch {
		case q.Given.Response == nil:
			r.Output = sessionlog.Text("")
		case one != nil && q.Given.Parts == nil:
			r.Output = output(one)
		default:
			r.Output = owned(q.Given.Response)
		}
		p.results, p.names = append(p.results, r), append(p.names, q.Given.Name)
	case q.Thought:
		p.thoughts = append(p.thoughts, said)
	case isText:
		p.text(said)
	default:
		p.block(q.Whole)
	}
}
