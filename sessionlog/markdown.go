package sessionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// MarkdownOptions say how a session is written for people.
type MarkdownOptions struct {
	MaxText int    // bytes of one text, of which the beginning and the end stay; 0 is 4,000, less than 0 is all
	Title   string // "" is "Session"
}

// A Markdown writes a session for people: prompts, turns, calls with their arguments, results, what was denied and suspended,
// and at the end the snapshot.
//
// Nothing of the log is ever read as Markdown or obeyed by a terminal: every text stands in a fence that is longer than any
// in it, every name in a span of code, and control characters as escapes (package visible). What is left out of a long text is
// said between fences, where no text can pretend to say it. It holds one event, the names of the calls without a result, and
// the snapshot. It is not safe for concurrent use.
type Markdown struct {
	w     *bufio.Writer
	max   int
	title string
	fold  *Fold
	begun bool
	turn  int
	runs  int
	names map[string]string // of calls, by id, until their result comes
}

const defaultMaxText = 4000

// NewMarkdown returns a Markdown that writes to w.
func NewMarkdown(w io.Writer, o *MarkdownOptions) *Markdown {
	m := &Markdown{w: bufio.NewWriter(w), max: defaultMaxText, title: "Session", fold: NewFold(), names: map[string]string{}}
	m.fold.odd = func(*EventError) {}
	if o != nil && o.MaxText != 0 {
		m.max = o.MaxText
	}
	if o != nil && o.Title != "" {
		m.title = o.Title
	}
	return m
}

// Add writes one event, as it stands in a log; one with fields that hold something else is shown as it stands. The error is that of
// Fold.AddRaw, or of the writer.
func (m *Markdown) Add(raw []byte) error {
	if err := m.fold.AddRaw(raw); err != nil {
		return err
	}
	m.begin()
	e, err := ParseEvent(raw)
	if err != nil { // of a kind that is known, but not with these values: it is shown as what is not known
		return m.other(raw)
	}
	if turn := e.Base().Turn; turn > 0 && turn != m.turn {
		m.turn = turn
		m.printf("## Turn %d\n\n", turn)
	}
	switch e := e.(type) {
	case *RunStarted:
		m.started(e)
	case *LLMCompleted:
		said := e.Said()
		m.content(said.Content)
		m.calls(said.ToolCalls)
	case *ToolRequested:
		m.calls(e.Calls)
	case *ToolCompleted:
		m.results(e.Results)
	case *RunTerminal:
		m.printf("**Run ended**: %s, %s%s\n\n", codeSpan(e.Reason), many(e.TurnsUsed, "turn"), tokensOf(e.TotalTokens))
	default:
		return m.other(raw)
	}
	return nil
}

// Close writes the snapshot and everything that is held back. It does not close the writer.
func (m *Markdown) Close() error {
	m.begin()
	b, err := json.MarshalIndent(m.fold.Snapshot(), "", "  ")
	if err != nil {
		return err
	}
	m.printf("## Snapshot\n\nWhat the events come to.\n\n")
	m.fence("json", visible.JSON(string(b)))
	return m.w.Flush()
}

func (m *Markdown) begin() {
	if !m.begun {
		m.begun = true
		m.printf("# %s\n\n", escapeMarkdown(m.title))
	}
}

// printf keeps the first error in the writer, which Close returns.
func (m *Markdown) printf(format string, args ...any) { fmt.Fprintf(m.w, format, args...) }

func (m *Markdown) started(e *RunStarted) {
	m.runs++
	m.turn = 0
	m.printf("## Run %d\n\n", m.runs)
	if e.RunID != "" {
		m.printf("- id: %s\n", codeSpan(e.RunID))
	}
	if e.AgentID != "" {
		m.printf("- agent: %s\n", codeSpan(e.AgentID))
	}
	for _, c := range e.Criteria {
		m.printf("- held to: %s\n", codeSpan(c))
	}
	if len(e.Attachments) > 0 {
		m.printf("- %s\n", many(len(e.Attachments), "attachment"))
	}
	m.printf("\n**Prompt**\n\n")
	m.text("text", e.Goal)
	if e.SystemPrompt != "" {
		m.printf("**System prompt**\n\n")
		m.text("text", e.SystemPrompt)
	}
}

// content writes what was said: text as text, every other block as JSON.
func (m *Markdown) content(content json.RawMessage) {
	for _, p := range partsOf(content) {
		if p.label != "" {
			m.printf("**%s**\n\n", p.label)
		}
		m.text(p.lang, p.text)
	}
}

// calls writes those that were not written before: an answer has them, and then the request.
func (m *Markdown) calls(calls []ToolCall) {
	for _, c := range calls {
		if _, said := m.names[c.ID]; said && c.ID != "" {
			continue
		}
		m.names[c.ID] = c.Name
		m.printf("**Call** %s %s\n\n", codeSpan(c.Name), codeSpan(c.ID))
		if text, isText := jsonText(c.Arguments); isText {
			m.text("text", text)
		} else if len(c.Arguments) > 0 {
			m.text("json", indented(c.Arguments))
		}
	}
}

func (m *Markdown) results(results []ToolResult) {
	for _, r := range results {
		what := "Result"
		switch {
		case r.IsFatal != nil && *r.IsFatal:
			what = "Fatal error"
		case r.IsError:
			what = "Error"
		}
		m.printf("**%s** of %s %s\n\n", what, codeSpan(m.names[r.CallID]), codeSpan(r.CallID))
		delete(m.names, r.CallID)
		m.content(r.Output)
	}
}

// other writes an event of any other kind in a line.
func (m *Markdown) other(raw []byte) error {
	kind, fields := Summarize(raw)
	if fields != "" {
		fields = ": " + codeSpan(fields)
	}
	m.printf("- %s%s\n\n", kindName(kind), fields)
	return nil
}

// text writes a text in a fence, or its beginning and its end in two.
func (m *Markdown) text(lang, s string) {
	s = visible.Text(strings.ReplaceAll(s, "\r\n", "\n"))
	if s == "" {
		m.printf("(empty)\n\n")
		return
	}
	head, left, tail := shorten(s, m.max)
	m.fence(lang, head)
	if left > 0 {
		m.printf("*… %d of %d bytes left out …*\n\n", left, len(s))
		m.fence(lang, tail)
	}
}

// fence writes s as a block of code.
func (m *Markdown) fence(lang, s string) { m.printf("%s\n\n", visible.Fence(lang, s)) }

// shorten cuts the middle out of s, at ends of lines where such are near, else between characters.
func shorten(s string, max int) (head string, left int, tail string) {
	if max < 0 || len(s) <= max {
		return s, 0, ""
	}
	from, to := max*3/4, len(s)-max/4
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	if i := strings.LastIndexByte(s[:from], '\n'); i > from/2 {
		from = i + 1
	}
	if i := strings.IndexByte(s[to:], '\n'); i >= 0 && i < (len(s)-to)/2 {
		to += i + 1
	}
	return s[:from], to - from, s[to:]
}

// codeSpan is s as a span of code, on one line.
func codeSpan(s string) string {
	if s == "" {
		return "(none)"
	}
	const most = 300
	if len(s) > most {
		head, _, _ := shorten(s, most)
		s = fmt.Sprintf("%s… (%d more bytes)", head, len(s)-len(head))
	}
	return visible.Code(s)
}

// escapeMarkdown is s as text of a heading: neither marks nor links, those that GitHub finds by itself included.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range visible.Line(s) {
		if strings.ContainsRune("\\`*_[]<>&~|:@#", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "www.", `www\.`)
}

// kindName is a kind in bold, or as a span where it is not what kinds look like.
func kindName(k Kind) string {
	if strings.Trim(string(k), "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || strings.Trim(string(k), "_") != string(k) || k == "" {
		return codeSpan(string(k))
	}
	return "**" + string(k) + "**"
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteMarkdown writes a log as Markdown. The error is that of the log, a *LoadError around an *EventError for an event that
// cannot be read, or that of the writer.
func WriteMarkdown(w io.Writer, log *Reader, o *MarkdownOptions) error {
	m := NewMarkdown(w, o)
	for e, err := range log.Entries() {
		if err != nil {
			return err
		}
		if e.event == nil {
			continue
		}
		if err := m.Add(e.event); err != nil {
			return log.fail(err)
		}
	}
	return m.Close()
}

// A part is one piece of a content: text, or JSON of a block that is not text.
type part struct {
	label string // what it is, where it is not what was said
	lang  string
	text  string
}

// partsOf takes a content apart: a string is one text; of a list of blocks those with a text are text, others their JSON.
func partsOf(content json.RawMessage) (parts []part) {
	if len(content) == 0 || content[0] == 'n' {
		return nil
	}
	if text, isText := jsonText(content); isText {
		if text == "" {
			return nil
		}
		return []part{{lang: "text", text: text}}
	}
	if content[0] != '[' {
		return []part{{lang: "json", text: indented(content)}}
	}
	var s jsonscan.Scanner
	s.Reset(content)
	for s.Begin('['); s.More(']'); {
		parts = append(parts, partOf(s.Raw()))
	}
	return parts
}

// partOf reads one block.
func partOf(block json.RawMessage) part {
	if text, isText := jsonText(block); isText {
		return part{lang: "text", text: text}
	}
	var b struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		Thinking *string `json:"thinking"`
	}
	if json.Unmarshal(block, &b) == nil {
		switch {
		case b.Thinking != nil:
			return part{"Thoughts", "text", *b.Thinking}
		case b.Text != nil && (b.Type == "thinking" || b.Type == "reasoning"):
			return part{"Thoughts", "text", *b.Text}
		case b.Text != nil:
			return part{lang: "text", text: *b.Text}
		}
	}
	return part{lang: "json", text: indented(block)}
}

// jsonText returns what a JSON string holds.
func jsonText(v json.RawMessage) (string, bool) {
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	var s jsonscan.Scanner
	s.Reset(v)
	return s.Text(), s.Err() == nil
}

func indented(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, v, "", "  ") != nil {
		return string(v)
	}
	return b.String()
}

// Summarize returns an event's kind and, for people, what it says, in one line. It is text of the log: who shows it passes it
// through package visible. Of what is no event there is nothing to say.
func Summarize(event []byte) (kind Kind, text string) {
	if e, err := ParseEvent(event); err == nil {
		if text, ok := summary(e); ok {
			return KindOf(e), text
		}
	}
	var s jsonscan.Scanner
	var fields []string
	s.Reset(event)
	for s.Begin('{'); s.More('}'); {
		switch key := string(s.Key()); key {
		case "kind":
			if s.Peek() == '"' {
				kind = Kind(s.TextBytes())
			} else {
				s.Skip()
			}
		case "turn", "category", "primitive", "tape_seq":
			s.Skip()
		default:
			if v := summaryValue(s.Raw()); v != "" {
				fields = append(fields, key+" "+v)
			}
		}
	}
	return kind, strings.Join(fields, ", ")
}

// summaryValue is a field's value; nothing for one that is empty.
func summaryValue(v json.RawMessage) string {
	text, isText := jsonText(v)
	switch {
	case isText:
		return brief(text)
	case string(v) == "null" || string(v) == "[]" || string(v) == "{}":
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return brief(string(v))
	}
	return brief(b.String())
}

// summary is what the events of a conversation say.
func summary(e Event) (string, bool) {
	switch e := e.(type) {
	case *RunStarted:
		return brief(e.Goal), true
	case *LLMCompleted:
		return joined(contentText(e.Said().Content), callNames(e.Said().ToolCalls)), true
	case *ToolRequested:
		var all []string
		for _, c := range e.Calls {
			all = append(all, strings.TrimSpace(c.Name+" "+brief(string(c.Arguments))+" "+c.ID))
		}
		return strings.Join(all, "; "), true
	case *ToolCompleted:
		var all []string
		for _, r := range e.Results {
			failed := ""
			if r.IsError {
				failed = "error: "
			}
			all = append(all, r.CallID+": "+failed+contentText(r.Output))
		}
		return strings.Join(all, "; "), true
	case *RunTerminal:
		return e.Reason + ", " + many(e.TurnsUsed, "turn") + tokensOf(e.TotalTokens), true
	}
	return "", false
}

func callNames(calls []ToolCall) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "calls " + strings.Join(names, ", ")
}

func contentText(content json.RawMessage) string {
	var all []string
	for _, p := range partsOf(content) {
		all = append(all, brief(p.text))
	}
	return strings.Join(all, " ")
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " · " + b
}

// maxBrief is how much of one text stands in a line, in characters.
const maxBrief = 120

// brief is the beginning of a text, its white space made single spaces.
func brief(s string) string {
	if len(s) > 64*maxBrief { // no more is looked at
		s = strings.ToValidUTF8(s[:64*maxBrief], "") + "…"
	}
	s = strings.Join(strings.Fields(s), " ")
	n := 0
	for i := range s {
		if n++; n > maxBrief {
			return strings.TrimSuffix(s[:i], "…") + "…"
		}
	}
	return s
}

// tokensOf is how many tokens a run took, nothing where nobody counted them.
func tokensOf(n int64) string {
	if n == 0 {
		return ""
	}
	return ", " + many(int(n), "token")
}
