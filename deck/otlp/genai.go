package otlp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// schema is the version of OpenTelemetry's semantic conventions that names and attributes are of: gen_ai and mcp, http, process.
const schema = "https://opentelemetry.io/schemas/1.41.0"

// providers are the conventions' names of those that the tape calls otherwise.
var providers = map[string]string{"gemini": "gcp.gemini", "bedrock": "aws.bedrock"}

// transports are the conventions' names of what carries the messages of a tool server.
var transports = map[string]string{"stdio": "pipe", "http": "tcp"}

// A mapper makes spans of the records of a recording.
type mapper struct {
	rec     *recording.Manifest
	book    *account.Book
	store   cas.Store
	content bool
	said    *llm.Said // by the call that is looked at
	last    int64     // ms after the start of the last record
}

func newMapper(rec *recording.Manifest, store cas.Store, o *Options) *mapper {
	if o == nil {
		o = new(Options)
	}
	m := &mapper{rec: rec, book: account.NewBook(store, o.Prices), store: store, content: o.Content}
	if o.Content {
		m.book.Read = func(said *llm.Said) { m.said = said }
	}
	return m
}

// program is the spawn_id of the program, whose span is that of the run.
const program = 1

// resource is what the spans are all of.
func (m *mapper) resource() (a Attributes) {
	a.text("service.name", m.name())
	a.text("host.name", m.rec.Host.Name)
	a.text("os.type", m.rec.Host.OS)
	a.text("host.arch", m.rec.Host.Arch)
	return a
}

func (m *mapper) name() string { return filepath.Base(m.rec.Program.Path) }

// new begins the span of a record, in ms after the start.
func (m *mapper) new(seq uint64, name string, kind int, start, end int64) *Span {
	return &Span{
		TraceID: idOf(16, m.rec.ID), SpanID: idOf(8, m.rec.ID, seq), ParentID: idOf(8, m.rec.ID, "run"), Name: strings.TrimSpace(name), Kind: kind,
		Start: m.at(start), End: m.at(max(start, end)), Attributes: Attributes{},
	}
}

func (m *mapper) at(ms int64) string {
	return strconv.FormatInt(m.rec.StartedAt.UnixNano()+ms*1e6, 10)
}

// run is the span of the run itself.
func (m *mapper) run() *Span {
	s := m.new(0, "invoke_agent "+m.name(), kindInternal, 0, m.last)
	s.SpanID, s.ParentID = s.ParentID, ""
	s.Attributes.text("gen_ai.operation.name", "invoke_agent")
	s.Attributes.text("gen_ai.agent.name", m.name())
	s.Attributes.text("tapedeck.recording.id", m.rec.ID)
	if m.rec.Parent != nil {
		s.Attributes.text("tapedeck.recording.parent", *m.rec.Parent)
	}
	if e := m.rec.Exit; e != nil {
		s.ended(e.Code, e.Signal)
	}
	a := m.book.Close().Total
	s.Attributes.number("gen_ai.usage.input_tokens", a.InputTokens)
	s.Attributes.number("gen_ai.usage.output_tokens", a.OutputTokens)
	s.Attributes.cost(a.CostUSD)
	return s
}

// span is that of a record; ok is false where it has none.
func (m *mapper) span(r *tape.Record) (s *Span, ok bool) {
	m.said, m.last = nil, max(m.last, r.MonotonicMS)
	turn := m.book.Add(r)
	start, end := tape.Spanned(r)
	switch k := r.Kind.(type) {
	case *tape.LLMCall:
		s = m.new(r.Seq, "", kindClient, start, end)
		s.call(k, turn)
		s.Attributes.text("gen_ai.conversation.id", m.rec.ID+"/"+k.Lane)
		s.conversation(m.said)
	case *tape.HTTPExchange:
		s = m.new(r.Seq, k.Method, kindClient, start, end)
		s.exchange(&k.Exchange)
		s.Attributes.text("url.full", plainURL(k.URL))
	case *tape.MCPJSONRPC:
		s = m.new(r.Seq, cutName(k.Method), kindClient, start, end)
		s.message(k, m.bytes(k.Request), m.bytes(k.Response), m.content)
	case *tape.ProcessSpawn:
		if k.SpawnID == program && k.ParentSpawnID == 0 {
			return nil, false // the run itself
		}
		s = m.new(r.Seq, filepath.Base(k.Program), kindInternal, start, end)
		if k.SpawnID != 0 { // by which those that it started name it, whose records come before its own
			s.SpanID = idOf(8, m.rec.ID, "process", k.SpawnID)
		}
		if k.ParentSpawnID > program {
			s.ParentID = idOf(8, m.rec.ID, "process", k.ParentSpawnID)
		}
		s.Attributes.text("process.executable.name", filepath.Base(k.Program))
		s.ended(k.ExitCode, k.Signal)
	default:
		return nil, false
	}
	s.Attributes.number("tapedeck.record.seq", int64(r.Seq)) //nolint:gosec // a count of records
	return s, true
}

// call is about a call of a model, of which turn is what is known; nil for nothing.
func (s *Span) call(k *tape.LLMCall, turn *account.Turn) {
	operation := "chat"
	if strings.Contains(k.Endpoint, "embed") {
		operation = "embeddings"
	}
	s.Name = strings.TrimSpace(operation + " " + cutName(k.Model))
	s.Attributes.text("gen_ai.operation.name", operation)
	s.Attributes.text("gen_ai.provider.name", cmp.Or(providers[k.Provider], k.Provider))
	s.Attributes.text("gen_ai.request.model", cutName(k.Model))
	if u, ok := llm.UsageOf(k); ok {
		s.Attributes.number("gen_ai.usage.input_tokens", u.InputTokens)
		s.Attributes.number("gen_ai.usage.output_tokens", u.OutputTokens)
		s.Attributes.number("gen_ai.usage.cache_read.input_tokens", u.CacheReadTokens)
		s.Attributes.number("gen_ai.usage.cache_creation.input_tokens", u.CacheWriteTokens)
	}
	s.exchange(&k.Exchange)
	if turn == nil {
		return
	}
	s.Attributes.text("gen_ai.response.model", cutName(turn.Model))
	s.Attributes.cost(turn.CostUSD)
	if turn.Error != "" {
		s.fail("model_error")
	}
}

// plainURL is a URL without what may be content or a name: its query, its fragment, its user.
func plainURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// exchange is about a request and its answer.
func (s *Span) exchange(x *tape.Exchange) {
	s.Attributes.text("http.request.method", x.Method)
	if u, err := url.Parse(x.URL); err == nil {
		s.Attributes.text("server.address", u.Hostname())
		if port, err := strconv.ParseInt(u.Port(), 10, 64); err == nil {
			s.Attributes.number("server.port", port)
		}
	}
	if x.Status != 0 {
		s.Attributes.number("http.response.status_code", int64(x.Status))
	}
	switch {
	case x.Error != "":
		s.fail("no_answer")
	case x.Status >= 400:
		s.fail(strconv.Itoa(x.Status))
	}
}

// message is about what was asked of a tool server, or by it.
func (s *Span) message(k *tape.MCPJSONRPC, request, response []byte, content bool) {
	if k.Method == "tools/call" {
		tool := cutName(mcptext.Subject(k.Method, request))
		s.Name = strings.TrimSpace(k.Method + " " + tool)
		s.Attributes.text("gen_ai.operation.name", "execute_tool")
		s.Attributes.text("gen_ai.tool.name", tool)
		if content {
			s.Attributes.json("gen_ai.tool.call.arguments", jsonAt(request, "params", "arguments"))
			s.Attributes.json("gen_ai.tool.call.result", jsonAt(response, "result"))
		}
	}
	s.Attributes.text("mcp.method.name", cutName(k.Method))
	s.Attributes.text("network.transport", transports[k.Transport])
	s.Attributes.text("tapedeck.mcp.server", cutName(k.Server))
	switch {
	case k.Error != "":
		s.fail("no_answer")
	case len(response) > 0 && mcptext.Answer(k.Method, response, 1).Failed:
		s.fail("tool_error")
	}
}

// maxMessage bounds a message to or from a tool server that is looked into, in bytes.
const maxMessage = 4 << 20

// bytes are those of a payload; nil where they are too many, or missing.
func (m *mapper) bytes(p *tape.Payload) []byte {
	if p == nil || p.Len > maxMessage || !p.Inline && m.store == nil {
		return nil
	}
	b, err := p.Bytes(m.store)
	if err != nil {
		return nil // verify tells of that
	}
	return b
}

// ended is about how a process ended.
func (s *Span) ended(code int, signal string) {
	s.Attributes.number("process.exit.code", int64(code))
	if code != 0 || signal != "" {
		s.fail(cmp.Or(signal, fmt.Sprint("exit ", code)))
	}
}

// fail says that it failed, and with what kind of error: the text of one may quote what was asked. What was failed with first stands.
func (s *Span) fail(kind string) {
	if s.Status.Code == 0 {
		s.Attributes.text("error.type", kind)
		s.Status.Code = statusError
	}
}

// Bounds: of a name, and of content, which is one text or value, and the messages that one call has, in bytes.
const (
	maxName     = 256
	maxText     = 16 << 10
	maxMessages = 128 << 10
)

// cut is a text as a span has it.
func cut(text string) string { return cutTo(maxText, text) }

func cutTo(size int, text string) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "…"
}

// cutName is a name that somebody else chose, a tool's or a model's, as a span has it.
func cutName(name string) string { return cutTo(maxName, name) }

// hiddenName is cutName of one that nobody has taken secrets out of; content does, where it is wanted.
func hiddenName(name string, content func([]byte) []byte) string {
	if content != nil && name != "" {
		name = string(content([]byte(name)))
	}
	return cutName(name)
}

// json adds a value of JSON as it stands, "" or null is none.
func (a *Attributes) json(key string, value []byte) {
	if text := string(bytes.TrimSpace(value)); text != "null" {
		a.text(key, cut(text))
	}
}

// jsonAt is the value at a path of an object; nil where there is none.
func jsonAt(b []byte, path ...string) []byte {
	for _, name := range path {
		var of map[string]json.RawMessage
		if json.Unmarshal(b, &of) != nil {
			return nil
		}
		b = of[name]
	}
	return b
}

// A message and a part are those of the conventions' JSON schemas of messages.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Reason string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Response  any    `json:"response,omitempty"`
}

// valueOf is a value of JSON as a part has it: itself, or its beginning as a text.
func valueOf(raw json.RawMessage) any {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > maxText || !json.Valid(raw):
		return cut(string(raw))
	}
	return raw
}

// conversation adds what a call says: what is new in its history, as far as there is room from the end, and the answer. nil is nothing.
func (s *Span) conversation(said *llm.Said) {
	if said == nil {
		return
	}
	if said.System != "" && said.Known == 0 {
		s.parts("gen_ai.system_instructions", []part{{Type: "text", Content: cut(said.System)}})
	}
	var input []message
	room := maxMessages
	for _, h := range slices.Backward(said.New) {
		m := heardMessage(&h)
		b, _ := json.Marshal(m)
		if room -= len(b); room < 0 {
			break
		}
		input = append(input, m)
	}
	slices.Reverse(input)
	if len(input) > 0 {
		s.parts("gen_ai.input.messages", input)
	}
	if said.Answer == nil {
		return
	}
	answer := message{Role: llm.RoleAssistant, Parts: []part{}, Reason: said.Answer.Stop}
	if text := account.TextOf(said.Answer.Message.Content); text != "" {
		answer.Parts = append(answer.Parts, part{Type: "text", Content: cut(text)})
	}
	for _, c := range said.Answer.Message.ToolCalls {
		answer.Parts = append(answer.Parts, part{Type: "tool_call", ID: c.ID, Name: cutName(c.Name), Arguments: valueOf(c.Arguments)})
	}
	s.parts("gen_ai.output.messages", []message{answer})
}

// parts adds a value as the text of its JSON.
func (s *Span) parts(key string, value any) {
	if b, err := json.Marshal(value); err == nil {
		s.Attributes.text(key, string(b))
	}
}

func heardMessage(h *llm.Heard) message {
	m := message{Role: h.Role, Parts: []part{}}
	for _, text := range h.Texts {
		m.Parts = append(m.Parts, part{Type: "text", Content: cut(text)})
	}
	for _, c := range h.Calls {
		m.Parts = append(m.Parts, part{Type: "tool_call", ID: c.ID, Name: cutName(c.Name), Arguments: valueOf(c.Arguments)})
	}
	for _, r := range h.Results {
		m.Parts = append(m.Parts, part{Type: "tool_call_response", ID: r.CallID, Response: valueOf(r.Output)})
	}
	return m
}

// daemonResource is what the spans of a daemon's runs are all of.
func daemonResource(host string) (a Attributes) {
	a.text("service.name", "tapedeck")
	a.text("host.name", host)
	return a
}

// runID is the id of the span of a daemon's run.
func runID(id runtrace.ID) string { return idOf(8, "daemon", id.Agent, id.Run) }

// told is a span of what a daemon was told of a run. content takes secrets out; nil leaves content out.
func told(id runtrace.ID, span, name string, from, to time.Time) *Span {
	s := &Span{
		TraceID: idOf(16, "daemon", id.Agent, id.Run), SpanID: idOf(8, "daemon", id.Agent, id.Run, span), ParentID: runID(id),
		Name: strings.TrimSpace(name), Kind: kindInternal, Attributes: Attributes{},
		Start: strconv.FormatInt(from.UnixNano(), 10), End: strconv.FormatInt(to.UnixNano(), 10),
	}
	if id == (runtrace.ID{}) { // of no run: a trace of its own
		s.TraceID, s.ParentID = idOf(16, "daemon", span), ""
	}
	s.Attributes.text("gen_ai.agent.id", id.Agent)
	s.Attributes.text("tapedeck.run.id", id.Run)
	return s
}

// runSpan is that of a daemon's run that has ended.
func runSpan(id runtrace.ID, run *openRun, e *runtrace.Ended, now time.Time, content func([]byte) []byte) *Span {
	s := told(id, "run", "invoke_agent "+id.Agent, run.begun, now)
	s.SpanID, s.ParentID = s.ParentID, ""
	s.Attributes.text("gen_ai.operation.name", "invoke_agent")
	s.Attributes.text("gen_ai.agent.name", id.Agent)
	if r := run.started; r != nil {
		if r.Recording != nil {
			s.Attributes.text("tapedeck.recording.id", r.Recording.ID)
		}
		s.hidden("tapedeck.run.intent", r.Intent, content)
	}
	var o runtrace.Outcome
	_ = json.Unmarshal(e.Outcome, &o) // of an incomplete one there is none
	status := cmp.Or(string(e.Status), string(runtrace.Completed))
	s.Attributes.text("tapedeck.run.status", status)
	s.Attributes.text("tapedeck.run.outcome", hiddenName(o.Status, content))
	if run.started != nil { // else nobody counted
		s.Attributes.number("tapedeck.run.turns", int64(run.turns))
	}
	s.hidden("tapedeck.run.summary", o.Summary, content)
	switch {
	case status == string(runtrace.Incomplete):
		s.fail(status)
	case slices.Contains([]string{"failure", "timeout", "give_up"}, o.Status):
		s.fail(o.Status)
	}
	return s
}

// hidden adds what is content, without its secrets, where content is wanted.
func (s *Span) hidden(key, text string, content func([]byte) []byte) {
	if content != nil && text != "" && text != "null" {
		s.Attributes.text(key, cut(string(content([]byte(text)))))
	}
}

// turnSpan is that of the turn of a daemon's run with an index.
func turnSpan(id runtrace.ID, index int, t *runtrace.Turn, from, to time.Time, content func([]byte) []byte) *Span {
	s := told(id, fmt.Sprint("turn ", index), "turn", from, to)
	s.Attributes.number("tapedeck.turn.index", int64(index))
	if t.Tool != nil {
		tool := hiddenName(*t.Tool, content)
		s.Name = strings.TrimSpace("execute_tool " + tool)
		s.Attributes.text("gen_ai.operation.name", "execute_tool")
		s.Attributes.text("gen_ai.tool.name", tool)
	}
	if t.Prompt != nil {
		s.hidden("tapedeck.turn.prompt", *t.Prompt, content)
	}
	s.hidden("gen_ai.tool.call.arguments", string(t.Parameters), content)
	s.hidden("gen_ai.tool.call.result", string(t.Output), content)
	if t.CLIOutcome != nil && t.CLIOutcome.Code != nil {
		s.Attributes.number("process.exit.code", int64(*t.CLIOutcome.Code))
	}
	s.Attributes.text("tapedeck.turn.verdict", hiddenName(t.VerifierVerdict, content))
	switch {
	case t.PolicyRejected != nil:
		s.Attributes.text("tapedeck.policy.rule", hiddenName(t.PolicyRejected.Rule, content))
		s.hidden("tapedeck.policy.reason", t.PolicyRejected.Reason, content)
		s.fail("policy_rejected")
	case t.Error != nil:
		s.hidden("tapedeck.turn.error", *t.Error, content)
		s.fail("tool_error")
	case t.CLIOutcome != nil && t.CLIOutcome.Outcome == runtrace.OutcomeTimeout:
		s.fail("timeout")
	}
	return s
}

// verdictSpan is that of a policy's decision, as the daemon keeps it, with its number among those of the run.
func verdictSpan(id runtrace.ID, number string, verdict []byte, now time.Time, content func([]byte) []byte) *Span {
	var v struct {
		Tool    string
		Verdict struct {
			Kind, Reason string
			Violations   []struct {
				PolicyName string `json:"policy_name"`
			}
		}
	}
	_ = json.Unmarshal(verdict, &v) // which the daemon made
	tool := hiddenName(v.Tool, content)
	s := told(id, "verdict "+number, "policy "+v.Verdict.Kind+" "+tool, now, now)
	s.Attributes.text("tapedeck.policy.decision", v.Verdict.Kind)
	s.Attributes.text("gen_ai.tool.name", tool)
	var names []string
	for _, x := range v.Verdict.Violations {
		if names = append(names, hiddenName(x.PolicyName, content)); len(names) == 10 {
			break
		}
	}
	s.Attributes.text("tapedeck.policy.names", strings.Join(names, ","))
	s.hidden("tapedeck.policy.reason", v.Verdict.Reason, content)
	return s
}
