package tapeview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
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
		if what = "a fork of its starter"; k.PID == 0 { // else a subshell
			what = "threads of its starter"
		}
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
	line := recording.Dollars(b.USD) + " at " + b.At()
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

// Options say how rows look. Zero is for a file or a pipe.
type Options struct {
	Cols   int // of the terminal; 0 where it is none
	Colour bool
	Prices *llm.Prices // nil are those that are built in
}

// maxTurns is of how many calls what they say is kept at once until they are written.
const maxTurns = 20_000

// Rows write a timeline, a record in one line or two. They are for one goroutine.
type Rows struct {
	say    sayer
	cols   int
	before int // columns that what stands before the last one has taken so far
	style  func(s saying, i int) (begin, end string)

	book  *account.Book
	turns map[uint64]*account.Turn // that were heard and not written yet, by seq
}

// New returns rows of a tape whose payloads are in store.
func New(store cas.Store, o *Options) *Rows {
	r := &Rows{
		say: sayer{max: maxSaid, store: store}, cols: o.Cols, style: func(saying, int) (string, string) { return "", "" },
		book: account.NewBook(store, o.Prices), turns: make(map[uint64]*account.Turn),
	}
	if o.Colour {
		r.style = styleOf
	}
	return r
}

// Hear passes records on and listens to what the calls of models among them say: a request repeats what was said before, so that rows of
// some records need to have heard the others.
func (r *Rows) Hear(records iter.Seq2[*tape.Record, error]) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				r.Listen(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Listen is Hear for one record.
func (r *Rows) Listen(rec *tape.Record) {
	if _, ok := rec.Kind.(*tape.LLMCall); !ok || len(r.turns) == maxTurns {
		return
	}
	if t := r.book.Add(rec); t != nil {
		r.turns[rec.Seq] = t
	}
}

// ANSI styles.
const (
	styleBold = "\x1b[1m"
	styleDim  = "\x1b[2m"
	styleRed  = "\x1b[31m"
	styleEnd  = "\x1b[0m"
)

// styleOf is the style of line i: of what failed the last line is red, which says so.
func styleOf(s saying, i int) (begin, end string) {
	switch {
	case s.failed && i == len(s.lines)-1:
		return styleRed, styleEnd
	case s.ignored:
		return styleDim, styleEnd
	case s.model && i == 0:
		return styleBold, styleEnd
	}
	return "", ""
}

// isInput reports whether a record is an input that nobody looks for first.
func isInput(k tape.Kind) bool {
	switch k.(type) {
	case *tape.NameLookup, *tape.ClockRead, *tape.ClockSleep, *tape.EnvRead, *tape.FileStat, *tape.DirList, *tape.RandomRead:
		return true
	}
	return false
}

// Write writes a record into columns that a tabwriter aligns.
func (r *Rows) Write(w io.Writer, rec *tape.Record, lane string) error {
	at, lane := Seconds(rec.MonotonicMS), clipped(lane)
	r.room(len(fmt.Sprint(rec.Seq)) + len(at) + len(rec.Kind.Name()) + len(lane) + 8)
	return r.lines(rec, func(i int, begin, line, end string) error {
		if i > 0 {
			_, err := visible.Fprintf(w, "\t\t\t\t"+begin+"%s"+end+"\n", line)
			return err
		}
		_, err := visible.Fprintf(w, "%d\t%s\t%s\t%s\t"+begin+"%s"+end+"\n", rec.Seq, at, rec.Kind.Name(), lane, line)
		return err
	})
}

// maxLane is how many characters of a lane have room: that of a process is its command line, which stands beside it.
const maxLane = 30

func clipped(lane string) string {
	if runes := []rune(lane); len(runes) > maxLane {
		return string(runes[:maxLane-1]) + "…"
	}
	return lane
}

// Now writes a record at once; its columns cannot wait for those below.
func (r *Rows) Now(w io.Writer, rec *tape.Record, lane string) error {
	r.room(65)
	return r.lines(rec, func(i int, begin, line, end string) error {
		if i > 0 {
			_, err := visible.Fprintf(w, strings.Repeat(" ", 65)+begin+"%s"+end+"\n", line)
			return err
		}
		_, err := visible.Fprintf(w, "%-5d  %9s  %-13s  %-30s  "+begin+"%s"+end+"\n", rec.Seq, Seconds(rec.MonotonicMS),
			rec.Kind.Name(), clipped(lane), line)
		return err
	})
}

// room bounds what messages say to what is left of the terminal.
func (r *Rows) room(before int) {
	r.before = max(r.before, before)
	if r.cols > 0 {
		r.say.max = max(r.cols-r.before, minSaid)
	}
}

// lines calls write for every line that a record says.
func (r *Rows) lines(rec *tape.Record, write func(i int, begin, line, end string) error) error {
	s := saying{lines: []string{Line(rec.Kind)}, failed: follow.Failed(rec.Kind), ignored: isInput(rec.Kind)}
	if isConversation(rec.Kind) {
		say := r.say
		say.turn = r.turns[rec.Seq]
		delete(r.turns, rec.Seq)
		s = say.record(rec.Kind)
		s.lines[len(s.lines)-1] += wayOn(rec.Kind)
	}
	if x, ok := rec.Kind.(*tape.HTTPExchange); ok && strings.HasPrefix(x.Lane, "mcp:") {
		s.ignored = true // what it carried stands beside it
	}
	for i, line := range s.lines {
		begin, end := r.style(s, i)
		if err := write(i, begin, line, end); err != nil {
			return err
		}
	}
	return nil
}
