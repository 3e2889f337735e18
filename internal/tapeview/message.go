// Package tapeview shows a tape to people: a record in a line or two of a timeline, its fields one a line, what its calls of models used.
//
// Goals: who reads a timeline sees what was asked and what came. Of a call of a model, whichever provider's and streamed or not, a row has
// the first words of what was said last, those of the answer, the tools that it asks for, tokens, cost and time; of a call of a tool server
// the tool, its arguments and the result; a testbench's rows and a recording's read alike. Nothing that a tape holds steers the terminal
// of who looks at it: all text of others is written by package visible.
//
// Memory is that of an account (package account) of the calls that were heard; of a payload no more is read than it takes to say what it
// holds, but for those of models.
//
// Not goals: which records are shown (package follow), terminals, pages.
package tapeview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// How many characters a line about a message has: in a file or a pipe, and on a terminal at least.
const (
	maxSaid = 120
	minSaid = 40
)

// A sayer says what the records of a conversation hold: with a tool server, over a WebSocket, with the model of a testbench.
type sayer struct {
	max   int
	store cas.Store     // nil for what stands in the records alone
	turn  *account.Turn // of the call of a model that is told of; nil where it is not known
}

// saying is what one record says.
type saying struct {
	lines   []string // one or two
	failed  bool     // it tells of a failure
	ignored bool     // it is no part of what people look for first: progress, logs
	model   bool     // it tells of a turn of a conversation with a model
}

// isConversation reports whether a record is one that a sayer tells of.
func isConversation(k tape.Kind) bool {
	switch k.(type) {
	case *tape.LLMCall, *tape.MCPJSONRPC, *tape.MCPOpen, *tape.MCPText, *tape.MCPClose, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		return true
	}
	return false
}

// IsMessage reports whether a record holds messages, which show by themselves.
func IsMessage(k tape.Kind) bool {
	switch k.(type) {
	case *tape.MCPJSONRPC, *tape.MCPText, *tape.WSMessage:
		return true
	}
	return false
}

// Arrows: what the program's side said, and what came.
const (
	sent     = "→ "
	received = "← "
)

func (s sayer) record(k tape.Kind) saying {
	switch k := k.(type) {
	case *tape.LLMCall:
		return s.model(k)
	case *tape.MCPJSONRPC:
		return s.call(k)
	case *tape.MCPOpen:
		return saying{lines: []string{openedBy(k)}}
	case *tape.MCPText:
		return s.text(k)
	case *tape.MCPClose:
		return saying{lines: []string{ended(k)}, failed: follow.Failed(k)}
	case *tape.WSOpen:
		return saying{lines: []string{strings.TrimSuffix(fmt.Sprintf("opened %s: %d", k.URL, k.Status), ": 0")}, failed: follow.Failed(k)}
	case *tape.WSMessage:
		return s.message(k)
	case *tape.WSClose:
		return saying{lines: []string{strings.TrimSpace(fmt.Sprintf("closed %d %s", k.Code, k.Reason))}, failed: follow.Failed(k)}
	}
	return saying{}
}

// call says what was asked, and below it what came of that. A server that asks has the arrows turned round.
func (s sayer) call(k *tape.MCPJSONRPC) saying {
	ask, answer := sent, received
	if k.From == "server" {
		ask, answer = received, sent
	}
	holds := mcptext.Request(k.Method, s.start(k.Request), s.max-len([]rune(k.Method))-len("→ "))
	out := saying{
		lines:   []string{strings.TrimSpace(ask + k.Method + " " + holds)},
		ignored: k.IsNotification(),
	}
	if out.ignored {
		return out
	}
	end := took(k.LatencyMS)
	if k.Response != nil && !k.Response.Inline && k.Response.Len > 0 {
		end = Size(k.Response.Len) + ", " + end
	}
	came := mcptext.Outcome{Text: "no answer", Failed: true}
	if k.Response != nil && k.Response.Len > 0 {
		came = mcptext.Answer(k.Method, s.start(k.Response), max(s.max-len(end)-5, minSaid/2))
	}
	if k.Error != "" {
		came.Text, came.Failed = came.Text+": "+k.Error, true
	}
	if came.Text == "" {
		came.Text = "{}"
	}
	if came.Failed || !strings.ContainsAny(came.Text[len(came.Text)-1:], `"}]`) {
		end = "(" + end + ")"
	}
	out.lines, out.failed = append(out.lines, answer+came.Text+" "+end), came.Failed
	return out
}

func took(ms int64) string {
	if ms < 10_000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return Seconds(ms)
}

func openedBy(k *tape.MCPOpen) string {
	what := k.URL
	if what == "" {
		what = visible.Command(append([]string{k.Program}, k.Args...))
	}
	if k.Protocol != "" {
		what += ", protocol " + k.Protocol
	}
	return "opened " + strings.TrimSpace(k.Transport+" "+what)
}

func ended(k *tape.MCPClose) string {
	said := "closed"
	switch {
	case k.Signal != "":
		said += " by " + k.Signal
	case k.ExitCode != nil:
		said += fmt.Sprintf(": exit %d", *k.ExitCode)
	}
	if k.Error != "" {
		said += " (" + k.Error + ")"
	}
	return said
}

// text is what came beside messages: a log on stdout, what was written to stderr.
func (s sayer) text(k *tape.MCPText) saying {
	head := received + "text "
	switch k.From {
	case "client":
		head = sent + "text "
	case "stderr":
		head = "stderr "
	}
	return saying{lines: []string{head + s.words(k.Payload, s.max-len([]rune(head)))}, ignored: true}
}

// message is a message of a WebSocket: of JSON its type first.
func (s sayer) message(k *tape.WSMessage) saying {
	head := received
	if k.Direction == "sent" {
		head = sent
	}
	if k.Payload == nil {
		return saying{lines: []string{head + k.Opcode}}
	}
	end := " " + Size(k.Payload.Len)
	if k.Opcode == "binary" {
		end = " binary," + end
	}
	b := s.start(k.Payload)
	room := max(s.max-len([]rune(head+end)), minSaid/2)
	what, ok := mcptext.Message(b, room)
	switch {
	case ok:
	case k.Opcode == "binary", !utf8.Valid(mcptext.TrimCut(b)):
		what, end = "", strings.TrimSpace(end)
	default:
		what = s.words(k.Payload, room)
	}
	return saying{lines: []string{head + what + end}}
}

// words are the first words of a payload, in quotes.
func (s sayer) words(p *tape.Payload, max int) string {
	b := mcptext.TrimCut(s.start(p))
	if !utf8.Valid(b) {
		return "binary, " + Size(p.Len)
	}
	return mcptext.Words(strings.TrimRight(string(b), "\r\n"), max)
}

// start returns the first bytes of a payload, as many as it takes to say what it holds; nothing where they cannot be had, which
// verify tells.
func (s sayer) start(p *tape.Payload) []byte {
	switch {
	case p == nil:
		return nil
	case p.Inline:
		return []byte(p.Text)
	case s.store == nil:
		return nil
	}
	r, err := p.Open(s.store)
	if err != nil {
		return nil
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, mcptext.Shown))
	if err != nil {
		return nil
	}
	return b
}

// A turn is what is shown of a call of a model, whoever the program asked.
type turn struct {
	head     string // whom it asked
	prompt   string // in quotes
	answer   string
	tools    []account.ToolCall
	end      string // what it used, cost and took
	refusal  string // why there is no answer; "" where there is
	nameless string // what names a request of which nothing is known
}

// testbench is a call of a program that asks its model past any provider, as on a testbench; false where its payloads are not there, or
// are not in our form.
func (s sayer) testbench(k *tape.LLMCall) (*turn, bool) {
	t := &turn{head: nameOf(k), nameless: "request " + k.RequestDigest.Short()}
	c, err := fixture.ReadCall(k, s.store)
	if err != nil {
		return t, false
	}
	t.prompt = c.LastUser()
	if ms := c.Answer.Delay().Milliseconds(); ms > 0 {
		t.end = took(ms)
	}
	if c.Answer.Err != nil {
		t.refusal = c.Answer.Err.Error()
		return t, true
	}
	t.answer = c.Answer.Response.Text
	for _, call := range c.Answer.Response.ToolCalls {
		t.tools = append(t.tools, account.ToolCall{Name: call.Name, Arguments: string(call.Arguments)})
	}
	return t, true
}

// provided is a call of a provider's model, as an account has it.
func (s sayer) provided(k *tape.LLMCall, a *account.Turn) *turn {
	t := &turn{head: nameOf(k), prompt: a.Prompt, answer: a.Answer, tools: a.Tools, end: costOfTurn(a)}
	if !a.Answered() {
		t.refusal = exchangeEnd(k)
		if why := reasonIn(s.start(k.Response)); why != "" {
			t.refusal += " " + mcptext.Words(why, max(s.max-len([]rune(t.refusal)), minSaid))
		}
	}
	return t
}

func nameOf(k *tape.LLMCall) string {
	return strings.Join(strings.Fields(k.Provider+" "+k.Endpoint+" "+k.Model), " ")
}

// reasonIn is the message of an error as providers answer with one, at any place near the top; "" where there is none.
func reasonIn(body []byte) string {
	var b struct {
		Message string `json:"message"`
		Error   json.RawMessage
	}
	if list := bytes.TrimLeft(body, " \r\n\t["); json.NewDecoder(bytes.NewReader(list)).Decode(&b) != nil {
		return ""
	}
	var inner struct{ Message string }
	var text string
	if json.Unmarshal(b.Error, &inner) != nil {
		json.Unmarshal(b.Error, &text)
	}
	return cmp.Or(inner.Message, text, b.Message)
}

// costOfTurn says what an answer used, cost and took: "812 in (700 cached), 45 out, $0.0031, 1204 ms".
func costOfTurn(a *account.Turn) string {
	var parts []string
	if u := a.Usage; u != nil {
		in := fmt.Sprintf("%d in", u.InputTokens)
		if u.CacheReadTokens > 0 {
			in += fmt.Sprintf(" (%d cached)", u.CacheReadTokens)
		}
		parts = append(parts, in, fmt.Sprintf("%d out", u.OutputTokens))
	}
	if a.CostUSD != nil {
		parts = append(parts, recording.Dollars(*a.CostUSD))
	}
	if a.LatencyMS > 0 {
		parts = append(parts, took(a.LatencyMS))
	}
	return strings.Join(parts, ", ")
}

// model says what a program asked a model, and below it what came.
func (s sayer) model(k *tape.LLMCall) saying {
	if a := s.turn; a != nil && k.Method != "" && (a.Prompt != "" || a.Answer != "" || len(a.Tools) > 0) {
		return s.lines(s.provided(k, a))
	}
	if k.Method != "" { // no conversation, or one that cannot be read
		line := nameOf(k) + ": " + exchangeEnd(k)
		if s.turn != nil && s.turn.Usage != nil {
			line += " (" + costOfTurn(s.turn) + ")"
		}
		return saying{lines: []string{line}, failed: follow.Failed(k)}
	}
	t, read := s.testbench(k)
	if !read {
		return saying{lines: []string{strings.TrimSpace(t.head + " " + t.nameless)}}
	}
	return s.lines(t)
}

func (s sayer) lines(t *turn) saying {
	asked := sent + strings.TrimLeft(t.head+" ", " ")
	switch {
	case t.prompt != "":
		asked += mcptext.Words(t.prompt, max(s.max-len([]rune(asked)), minSaid/2))
	case t.nameless != "":
		asked = strings.TrimPrefix(asked, sent) + t.nameless
	}
	if t.refusal != "" {
		return saying{lines: []string{strings.TrimSpace(asked), strings.TrimSpace(received + t.refusal + " " + inBrackets(t.end))}, failed: true, model: true}
	}
	came := s.answer(t)
	if t.end != "" && !strings.HasSuffix(came, `"`) && !strings.HasSuffix(came, "}") {
		t.end = inBrackets(t.end)
	}
	return saying{lines: []string{strings.TrimSpace(asked), strings.TrimSpace(received + came + " " + t.end)}, model: true}
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// answer is the text of an answer, then the tools that it asks for, as far as there is room.
func (s sayer) answer(t *turn) string {
	room := max(s.max-len([]rune(received))-max(len(t.end), len("99999 ms"))-1, minSaid)
	said := ""
	if t.answer != "" || len(t.tools) == 0 {
		text := room
		if len(t.tools) > 0 {
			text = max(room/2, minSaid/2) // what it does says more than what it tells
		}
		said = mcptext.Words(t.answer, text)
	}
	for _, call := range t.tools {
		left := room - len([]rune(said))
		if left < minSaid/2 {
			return said + " …"
		}
		said = strings.TrimLeft(said+" "+toolCall(call, left), " ")
	}
	return said
}

// toolCall says what a model wants done, as a request to a tool server shows.
func toolCall(c account.ToolCall, room int) string {
	name, err := json.Marshal(c.Name)
	if err != nil {
		return c.Name
	}
	// Arguments may be the beginning of some alone: so may the message be then, and where they end in the middle of a character nothing of it shows.
	return cmp.Or(mcptext.Request("tools/call", fmt.Appendf(nil, `{"params":{"name":%s,"arguments":%s`, name, c.Arguments), room), c.Name)
}
