package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
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
	store cas.Store // nil for what stands in the records alone
}

// saying is what one record says.
type saying struct {
	lines   []string // one or two
	failed  bool     // it tells of a failure
	ignored bool     // it is no part of what people look for first: progress, logs
}

// isConversation reports whether a record is one that a sayer tells of.
func isConversation(k tape.Kind) bool {
	switch k := k.(type) {
	case *tape.LLMCall:
		return k.Method == ""
	case *tape.MCPJSONRPC, *tape.MCPOpen, *tape.MCPText, *tape.MCPClose, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		return true
	}
	return false
}

// isMessage reports whether a record holds messages, which show by themselves.
func isMessage(k tape.Kind) bool {
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
		end = size(k.Response.Len) + ", " + end
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
	return seconds(ms)
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
	end := " " + size(k.Payload.Len)
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
		return "binary, " + size(p.Len)
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

// maxIndented is how long, in bytes, a message may be that is indented. A longer one shows as it stands.
const maxIndented = 8 << 20

// showMessages prints the whole of what one record of a conversation holds, JSON indented.
func (s *shown) showMessages(k tape.Kind, out io.Writer) error {
	for _, p := range follow.PayloadsOf(k) {
		if p.Len > maxIndented {
			if err := s.showPayload(p, out); err != nil {
				return err
			}
			continue
		}
		b, err := p.Bytes(s.tape.Store)
		if err != nil {
			return err
		}
		visible.Fprintf(out, "--- %s (%s)\n", p.Name, plural(len(b), "byte", "bytes"))
		if err := raw(out, "%s", indented(b, isTerminal(out))); err != nil {
			return err
		}
	}
	return nil
}

// indented is JSON with a value a line, and any other bytes as they are shown.
func indented(b []byte, terminal bool) string {
	var buf bytes.Buffer
	if json.Indent(&buf, bytes.TrimSpace(b), "", "  ") != nil || buf.Len() == 0 {
		return wholeLines(b, terminal)
	}
	buf.WriteByte('\n')
	return visible.JSON(buf.String())
}

// model says what a program last said to a model that it asked past any provider, as on a testbench, and below it what came. Of a call
// whose payloads are not there, or are not in our form, it names the request by its digest.
func (s sayer) model(k *tape.LLMCall) saying {
	head := strings.TrimLeft(strings.Join(strings.Fields(k.Provider+" "+k.Endpoint+" "+k.Model), " ")+" ", " ")
	digest := saying{lines: []string{head + "request " + k.RequestDigest.Short()}}
	c, err := fixture.ReadCall(k, s.store)
	if err != nil {
		return digest
	}
	out := digest
	if asked := c.LastUser(); asked != "" {
		out.lines = []string{sent + head + mcptext.Words(asked, max(s.max-len([]rune(sent+head)), minSaid/2))}
	}
	came := s.answer(c.Answer)
	if ms := c.Answer.Delay().Milliseconds(); ms > 0 {
		came += " " + took(ms)
	}
	out.lines, out.failed = append(out.lines, received+came), c.Answer.Err != nil
	return out
}

// answer says what a model answered: its text, then the tools that it calls, as far as there is room.
func (s sayer) answer(a *fixture.Answer) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	room := max(s.max-len([]rune(received))-len(" 99999 ms"), minSaid)
	said := ""
	if a.Response.Text != "" || len(a.Response.ToolCalls) == 0 {
		said = mcptext.Words(a.Response.Text, room)
	}
	for i := range a.Response.ToolCalls {
		left := room - len([]rune(said))
		if left < minSaid/2 {
			return said + " …"
		}
		said = strings.TrimLeft(said+" "+toolCall(&a.Response.ToolCalls[i], left), " ")
	}
	return said
}

// toolCall says what a model wants done, as a request to a tool server shows.
func toolCall(c *fixture.ToolCall, room int) string {
	request, err := json.Marshal(map[string]*fixture.ToolCall{"params": c})
	if err != nil {
		return c.Name
	}
	return mcptext.Request("tools/call", request, room)
}
