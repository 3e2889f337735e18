package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// summary says in one line what a record holds, with the way on where there is one.
func summary(k tape.Kind) string {
	s := content(k)
	if u := follow.UnreachedBy(k); u != nil {
		s += "; a server on this host is reached with record --upstream " + u.Upstream()
	}
	return s
}

func content(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.ClockRead:
		return fmt.Sprintf("%s clock: %d ms", k.Source, k.ValueMS)
	case *tape.ClockSleep:
		return fmt.Sprintf("slept %d ms", k.DurationMS)
	case *tape.LLMCall:
		return llmSummary(k)
	case *tape.HTTPExchange:
		return k.Method + " " + k.URL + ": " + exchangeEnd(k)
	case *tape.FileRead:
		return fmt.Sprintf("read %s, %s", k.Path, size(k.LenBytes))
	case *tape.FileWrite:
		if k.IsPlace() {
			return fmt.Sprintf("made %s, mode %s", k.Path, k.Mode)
		}
		return fmt.Sprintf("wrote %s, %s", k.Path, size(k.LenBytes))
	case *tape.FileDelete:
		return "deleted " + k.Path
	case *tape.ProcessSpawn:
		return spawnSummary(k)
	case *tape.MCPJSONRPC, *tape.MCPOpen, *tape.MCPText, *tape.MCPClose, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
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
		return "drew " + size(k.Length)
	case *tape.PolicyVerdict:
		return strings.TrimSpace(k.Tool + " " + k.ActionID + ": " + string(k.Verdict))
	case *tape.Unknown:
		return string(k.JSON)
	}
	return ""
}

func llmSummary(k *tape.LLMCall) string {
	if isConversation(k) {
		return strings.Join(sayer{max: maxSaid}.record(k).lines, "  ")
	}
	return strings.Join(strings.Fields(k.Provider+" "+k.Endpoint+" "+k.Model), " ") + ": " + exchangeEnd(k)
}

// exchangeEnd says what came of the exchange that k holds, of a gRPC call that failed its own status too: that of HTTP is 200 then.
func exchangeEnd(k tape.Kind) string {
	s, x := "no answer", tape.ExchangeOf(k)
	if x.Status != 0 {
		s = strconv.Itoa(x.Status)
		if x.Response != nil {
			s += ", " + size(x.Response.Len)
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
	return fmt.Sprintf("%s: %s after %s", visible.Command(append([]string{k.Program}, k.Args...)), end, seconds(k.DurationMS))
}

// wholeLines is b as whole lines when it is text. For a terminal what would steer it is escaped; who reads a file or a pipe
// gets the bytes.
func wholeLines(b []byte, terminal bool) string {
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

func indentJSON(w io.Writer, line []byte) error {
	var buf bytes.Buffer
	if err := json.Indent(&buf, bytes.TrimSpace(line), "", "  "); err != nil {
		return err
	}
	buf.WriteByte('\n')
	return raw(w, "%s", visible.JSON(buf.String()))
}

func size(n int64) string {
	switch {
	case n < 10_000:
		return plural(int(n), "byte", "bytes")
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

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
	return fmt.Sprintf("%s, %s", k.VarName, size(k.Value.Len))
}

func statSummary(k *tape.FileStat) string {
	switch k.Type {
	case "file":
		return fmt.Sprintf("looked at %s: a file, %s", k.Path, size(k.LenBytes))
	case "none":
		return fmt.Sprintf("looked at %s: nothing is there", k.Path)
	}
	return fmt.Sprintf("looked at %s: %s", k.Path, k.Type)
}

// newBill reads the prices of a file; "" is those of the project.
func newBill(file string) (*llm.Bill, error) {
	if file == "" {
		p, err := projectPrices()
		return llm.NewBill(p), err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w", err)
	}
	defer f.Close()
	p, err := llm.LoadPrices(f)
	if err != nil {
		return nil, fmt.Errorf("--prices %s: %w", file, err)
	}
	return llm.NewBill(p), nil
}

// writeBill is the line at the end of a timeline; nothing where no call has said what it used.
func writeBill(w io.Writer, b *llm.Bill) error {
	if b.Counted == 0 {
		return nil
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
	_, err := visible.Fprintln(w, line)
	return err
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
	line := fmt.Sprintf("%s at list prices of %s", dollars(b.USD), b.AsOf())
	switch {
	case unpriced != "":
		line += ", but for " + unpriced
	case b.Nameless > 0:
		line += ", but for " + plural(b.Nameless, "call that names no model", "calls that name no model")
	}
	return line
}

// dollars has four decimals; less than the last of them is said to be less.
func dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	}
	return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
}

// A billJSON is a bill in --json. Cost is null unless every call that used something has a price.
type billJSON struct {
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

func newBillJSON(b *llm.Bill) *billJSON {
	out := &billJSON{
		Calls: b.Calls, Counted: b.Counted, InputTokens: b.Usage.InputTokens, OutputTokens: b.Usage.OutputTokens,
		CacheReadTokens: b.Usage.CacheReadTokens, CacheWriteTokens: b.Usage.CacheWriteTokens,
		ReasoningTokens: b.Usage.ReasoningTokens, PricesAsOf: b.AsOf(), Unpriced: append([]string{}, b.Unpriced...),
	}
	if usd, ok := b.Whole(); ok {
		out.CostUSD = &usd
	}
	return out
}
