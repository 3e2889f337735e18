package tapeview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Line says in one line what a record holds, with the way on where there is one.
func Line(k tape.Kind) string { return content(k) + wayOn(k) }

// Title says in one line what a record holds, and of a conversation what was said in it as far as it is known: turn is that of a call of a
// model, nil for none; store has the payloads.
func Title(k tape.Kind, turn *account.Turn, store cas.Store) string {
	if !isConversation(k) {
		return content(k)
	}
	return strings.Join(sayer{max: maxSaid, store: store, turn: turn}.record(k).lines, "  ")
}

// wayOn says how a program reaches what it did not reach; "" where nothing is to be said.
func wayOn(k tape.Kind) string {
	if u := follow.UnreachedBy(k); u != nil {
		return "; a server on this host is reached with record --upstream " + u.Upstream()
	}
	return ""
}

func content(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.ClockRead:
		return fmt.Sprintf("%s clock: %d ms", k.Source, k.ValueMS)
	case *tape.ClockSleep:
		return fmt.Sprintf("slept %d ms", k.DurationMS)
	case *tape.HTTPExchange:
		return k.Method + " " + k.URL + ": " + exchangeEnd(k)
	case *tape.FileRead:
		return fmt.Sprintf("read %s, %s", k.Path, Size(k.LenBytes))
	case *tape.FileWrite:
		if k.IsPlace() {
			return fmt.Sprintf("made %s, mode %s", k.Path, k.Mode)
		}
		return fmt.Sprintf("wrote %s, %s", k.Path, Size(k.LenBytes))
	case *tape.FileDelete:
		return "deleted " + k.Path
	case *tape.ProcessSpawn:
		return spawnSummary(k)
	case *tape.LLMCall, *tape.MCPJSONRPC, *tape.MCPOpen, *tape.MCPText, *tape.MCPClose, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		return strings.Join(sayer{max: maxSaid}.record(k).lines, "  ")
	case *tape.NameLookup:
		return fmt.Sprintf("looked up %s (%s): %s", k.Host, k.Type, k.Result)
	case *tape.NetRefused:
		if strings.HasPrefix(k.Addr, "/") {
			return k.Addr + ": " + k.Reason
		}
		return fmt.Sprintf("%s port %d: %s", k.Addr, k.Port, k.Reason)
	case *tape.TLSRefused:
		return fmt.Sprintf("%s port %d: %s", k.Host, k.Port, k.Reason)
	case *tape.DirList:
		return listSummary(k)
	case *tape.EnvRead:
		return envSummary(k)
	case *tape.FileStat:
		return statSummary(k)
	case *tape.RandomRead:
		return "drew " + Size(k.Length)
	case *tape.PolicyVerdict:
		return strings.TrimSpace(k.Tool + " " + k.ActionID + ": " + string(k.Verdict))
	case *tape.Unknown:
		return string(k.JSON)
	}
	return ""
}

// exchangeEnd says what came of the exchange that k holds, of a gRPC call that failed its own status too: that of HTTP is 200 then.
func exchangeEnd(k tape.Kind) string {
	s, x := "no answer", tape.ExchangeOf(k)
	if x.Status != 0 {
		s = strconv.Itoa(x.Status)
		if x.Response != nil {
			s += ", " + Size(x.Response.Len)
		}
		if n := len(x.Stream); n > 1 {
			s += fmt.Sprintf(" in %d chunks", n)
		}
	}
	if x.Error != "" {
		s += " (" + x.Error + ")"
	}
	if call := grpcstatus.Of(k); call.Failed() {
		s += ", " + call.String()
	}
	return s
}

func spawnSummary(k *tape.ProcessSpawn) string {
	end := fmt.Sprintf("exit %d", k.ExitCode)
	if k.Signal != "" {
		end = k.Signal
	}
	what := visible.Command(append([]string{k.Program}, k.Args...))
	if k.Program == "" && len(k.Args) == 0 {
		what = "a fork of its starter" // a subshell
	}
	return fmt.Sprintf("%s: %s after %s", what, end, Seconds(k.DurationMS))
}

func listSummary(k *tape.DirList) string {
	var names []string
	if k.Names == nil || !k.Names.Inline || json.Unmarshal([]byte(k.Names.Text), &names) != nil {
		return "listed " + k.Path
	}
	return fmt.Sprintf("listed %s: %s", k.Path, plural(len(names), "name", "names"))
}

// envSummary is content of a variable. A long value, and one that is no text, shows in --payloads.
func envSummary(k *tape.EnvRead) string {
	switch {
	case k.Value == nil:
		return k.VarName
	case k.Value.Inline && k.Value.Len <= maxSaid:
		return k.VarName + "=" + k.Value.Text
	}
	return fmt.Sprintf("%s, %s", k.VarName, Size(k.Value.Len))
}

func statSummary(k *tape.FileStat) string {
	switch k.Type {
	case "file":
		return fmt.Sprintf("looked at %s: a file, %s", k.Path, Size(k.LenBytes))
	case "none":
		return fmt.Sprintf("looked at %s: nothing is there", k.Path)
	}
	return fmt.Sprintf("looked at %s: %s", k.Path, k.Type)
}

// A member is a key of a JSON object and its value, in the order in which they stand.
type member struct {
	name  string
	value json.RawMessage
}

// members takes an object apart; nil where b is none.
func members(b []byte) []member {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		m := member{name: name}
		if err != nil || !ok || dec.Decode(&m.value) != nil {
			return nil
		}
		out = append(out, m)
	}
	return out
}

// Fields writes the fields of a record for a person, one a line, headers as they stand in HTTP. Of chunks and payloads it
// says how much there is: the bytes follow, each once.
func Fields(out io.Writer, rec *tape.Record) error {
	var b strings.Builder
	for _, m := range members(tape.AppendRecord(nil, rec)) {
		switch m.name {
		case "type":
		case "kind":
			for _, f := range members(m.value) {
				writeField(&b, f, rec.Kind)
			}
		default:
			writeField(&b, m, nil)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeField writes one field of a record, or of its kind k.
func writeField(b *strings.Builder, m member, k tape.Kind) {
	x := tape.ExchangeOf(k)
	switch {
	case x != nil && m.name == "request_headers":
		writeHeaders(b, m.name, x.RequestHeaders)
	case x != nil && m.name == "response_headers":
		writeHeaders(b, m.name, x.ResponseHeaders)
	case x != nil && m.name == "stream":
		visible.Fprintf(b, "stream: %s\n", chunksOf(x.Stream))
	default:
		visible.Fprintf(b, "%s: %s\n", m.name, valueOf(m.value))
	}
}

func writeHeaders(b *strings.Builder, name string, list []tape.HeaderField) {
	visible.Fprintf(b, "%s:\n", name)
	for _, h := range list {
		visible.Fprintf(b, "  %s: %s\n", h.Name, h.Value)
	}
}

func chunksOf(list []tape.Chunk) string {
	s := plural(len(list), "chunk", "chunks")
	if len(list) > 0 {
		s += fmt.Sprintf(", from %s to %s after the request", Seconds(list[0].TMS), Seconds(list[len(list)-1].TMS))
	}
	return s
}

// valueOf is a JSON value for a person: a string without its quotes, a payload by its hash and without its text.
func valueOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	parts := members(raw)
	for _, m := range parts {
		if m.name != "content_hash" {
			continue
		}
		var said []string
		for _, p := range parts {
			if p.name != "text" {
				said = append(said, p.name+" "+valueOf(p.value))
			}
		}
		return strings.Join(said, ", ")
	}
	return string(raw)
}

// Text is b as whole lines when it is text. For a terminal what would steer it is escaped; who reads a file or a pipe
// gets the bytes.
func Text(b []byte, terminal bool) string {
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "(binary)\n"
	}
	text := string(b)
	if terminal {
		text = visible.Text(text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// Indented is JSON with a value a line, and any other bytes as they are shown.
func Indented(b []byte, terminal bool) string {
	var buf bytes.Buffer
	if json.Indent(&buf, bytes.TrimSpace(b), "", "  ") != nil || buf.Len() == 0 {
		return Text(b, terminal)
	}
	buf.WriteByte('\n')
	return visible.JSON(buf.String())
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 10_000:
		return plural(int(n), "byte", "bytes")
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// Seconds is a number of milliseconds for people.
func Seconds(ms int64) string { return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Bill is the line at the end of a timeline; "" where no call has said what it used.
func Bill(b *llm.Bill) string {
	if b.Counted == 0 {
		return ""
	}
	line := fmt.Sprintf("%s: %d tokens in", plural(b.Calls, "LLM call", "LLM calls"), b.Usage.InputTokens)
	if b.Usage.CacheReadTokens > 0 {
		line += fmt.Sprintf(" (%d from a cache)", b.Usage.CacheReadTokens)
	}
	line += fmt.Sprintf(", %d out", b.Usage.OutputTokens)
	if b.Usage.ReasoningTokens > 0 {
		line += fmt.Sprintf(" (%d reasoning)", b.Usage.ReasoningTokens)
	}
	if n := b.Calls - b.Counted; n > 0 {
		line += fmt.Sprintf("; %d did not say", n)
	}
	if cost := costOf(b); cost != "" {
		line += "; " + cost
	}
	return line
}

// costOf says what the calls cost, and whose price is not known; "" where no call has a price or a model's name.
func costOf(b *llm.Bill) string {
	unpriced := strings.Join(b.Unpriced, ", ")
	if b.Priced == 0 {
		if unpriced == "" {
			return ""
		}
		return "no price known for " + unpriced
	}
	line := fmt.Sprintf("%s at list prices of %s", recording.Dollars(b.USD), b.AsOf())
	switch {
	case unpriced != "":
		line += ", but for " + unpriced
	case b.Nameless > 0:
		line += ", but for " + plural(b.Nameless, "call that names no model", "calls that name no model")
	}
	return line
}

// A BillJSON is a bill in --json. Cost is null unless every call that used something has a price.
type BillJSON struct {
	Calls            int      `json:"calls"`
	Counted          int      `json:"counted"`
	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	CacheReadTokens  int64    `json:"cache_read_tokens"`
	CacheWriteTokens int64    `json:"cache_write_tokens"`
	ReasoningTokens  int64    `json:"reasoning_tokens"`
	CostUSD          *float64 `json:"cost_usd"`
	PricesAsOf       string   `json:"prices_as_of"`
	Unpriced         []string `json:"unpriced"`
}

// NewBillJSON is b for --json.
func NewBillJSON(b *llm.Bill) *BillJSON {
	out := &BillJSON{
		Calls: b.Calls, Counted: b.Counted, InputTokens: b.Usage.InputTokens, OutputTokens: b.Usage.OutputTokens,
		CacheReadTokens: b.Usage.CacheReadTokens, CacheWriteTokens: b.Usage.CacheWriteTokens,
		ReasoningTokens: b.Usage.ReasoningTokens, PricesAsOf: b.AsOf(), Unpriced: append([]string{}, b.Unpriced...),
	}
	if usd, ok := b.Whole(); ok {
		out.CostUSD = &usd
	}
	return out
}
