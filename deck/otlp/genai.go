package otlp

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// schema is the version of OpenTelemetry's semantic conventions that names and attributes are of: gen_ai and mcp, http, process.
const schema = "https://opentelemetry.io/schemas/1.41.0"

// providers are the conventions' names of those that the tape calls otherwise.
var providers = map[string]string{"gemini": "gcp.gemini", "bedrock": "aws.bedrock"}

// transports are the conventions' names of what carries the messages of a tool server.
var transports = map[string]string{"stdio": "pipe", "http": "tcp"}

// A mapper makes spans of records.
type mapper struct {
	rec     *recording.Manifest
	book    *account.Book
	store   cas.Store
	spawns  map[uint64]uint64 // the record of each process, by its spawn_id
	program uint64            // the record of the program itself; none has the greatest number
	last    int64             // ms after the start of the last record
}

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
	turn := m.book.Add(r)
	start, end := tape.Spanned(r)
	switch k := r.Kind.(type) {
	case *tape.LLMCall:
		s = m.new(r.Seq, "", kindClient, start, end)
		s.call(k, turn)
		s.Attributes.text("gen_ai.conversation.id", m.rec.ID+"/"+k.Lane)
	case *tape.HTTPExchange:
		s = m.new(r.Seq, k.Method, kindClient, start, end)
		s.exchange(&k.Exchange)
		s.Attributes.text("url.full", plainURL(k.URL))
	case *tape.MCPJSONRPC:
		s = m.new(r.Seq, k.Method, kindClient, start, end)
		s.message(k, m.bytes(k.Request), m.bytes(k.Response))
	case *tape.ProcessSpawn:
		if r.Seq == m.program {
			return nil, false // the run itself
		}
		s = m.new(r.Seq, filepath.Base(k.Program), kindInternal, start, end)
		if parent, ok := m.spawns[k.ParentSpawnID]; ok && parent != m.program {
			s.ParentID = idOf(8, m.rec.ID, parent)
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
	s.Name = strings.TrimSpace(operation + " " + k.Model)
	s.Attributes.text("gen_ai.operation.name", operation)
	s.Attributes.text("gen_ai.provider.name", cmp.Or(providers[k.Provider], k.Provider))
	s.Attributes.text("gen_ai.request.model", k.Model)
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
	s.Attributes.text("gen_ai.response.model", turn.Model)
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
	u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
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
func (s *Span) message(k *tape.MCPJSONRPC, request, response []byte) {
	if k.Method == "tools/call" {
		tool := mcptext.Subject(k.Method, request)
		s.Name = strings.TrimSpace(k.Method + " " + tool)
		s.Attributes.text("gen_ai.operation.name", "execute_tool")
		s.Attributes.text("gen_ai.tool.name", tool)
	}
	s.Attributes.text("mcp.method.name", k.Method)
	s.Attributes.text("network.transport", transports[k.Transport])
	s.Attributes.text("tapedeck.mcp.server", k.Server)
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
