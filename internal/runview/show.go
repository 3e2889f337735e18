package runview

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// ShowOptions say how a run is written out.
type ShowOptions struct {
	Colour   bool
	MaxLines int            // of one text that are kept, 0 for all
	Zone     *time.Location // of the times shown, nil for UTC
}

const (
	keyWidth  = 11      // of the head's names
	maxName   = 24      // columns of a field's name
	shownText = 8 << 10 // bytes of one line of a text that are kept where MaxLines is set
)

// WriteHead writes what is known of a run beside its turns.
func WriteHead(out io.Writer, r *Run, now time.Time, o *ShowOptions) error {
	w := &writer{w: bufio.NewWriter(out), o: o}
	w.key("run", r.ID)
	agent := r.Agent
	if r.AgentName != "" && r.AgentName != r.Agent {
		agent += " (" + r.AgentName + ")"
	}
	w.key("agent", agent)
	w.text("intent", r.Intent)
	w.text("wanted", r.Wanted)
	w.status(r)
	w.key("started", startedText(r, now, o.Zone))
	w.key("turns", r.CountsText())
	if r.Recording != "" {
		w.key("recording", r.Recording)
	}
	if c := r.Outcome; c != nil {
		w.outcome(c)
	}
	return w.w.Flush()
}

func startedText(r *Run, now time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	text := r.Started.In(zone).Format("2006-01-02 15:04:05")
	if r.Ended.IsZero() {
		return text + ", " + elapsed(r.Took(now)) + " ago"
	}
	return text + ", took " + Duration(r.Took(now))
}

// WriteTurn writes a whole turn: how it came out, what was asked, what came.
func WriteTurn(out io.Writer, t *Turn, o *ShowOptions) error {
	w := &writer{w: bufio.NewWriter(out), o: o}
	s := signs[t.Mark]
	r := newRow(unlimited, o.Colour).put(s.style, s.sign).put(plain, " ").put(bold, fmt.Sprintf("%d %s", t.Index, t.verb()))
	if t.Label != "" {
		r.put(plain, "  ").put(s.style, strings.ToUpper(t.Label))
	}
	w.line(r)
	asked, came := t.asked(), t.came()
	width := nameColumns(slices.Concat(asked, came))
	for _, f := range asked {
		w.field("  ", width, plain, f)
	}
	style := plain
	if t.Mark == Rejected {
		style = refused
	}
	for _, f := range came {
		w.field("  ", width, style, f)
	}
	w.w.WriteByte('\n')
	return w.w.Flush()
}

// A writer writes rows of a run; its first error is Flush's.
type writer struct {
	w *bufio.Writer
	o *ShowOptions
}

func (w *writer) line(r *row) {
	w.w.WriteString(r.String())
	w.w.WriteByte('\n')
}

func (w *writer) key(name, text string) {
	w.line(newRow(unlimited, w.o.Colour).column(dim, name, keyWidth).put(plain, text))
}

func (w *writer) status(r *Run) {
	s, words := r.state()
	w.line(newRow(unlimited, w.o.Colour).column(dim, "status", keyWidth).put(s, words))
}

func (w *writer) outcome(o *Outcome) {
	w.text("outcome", o.Summary)
	if len(o.Metrics) > 0 {
		w.key("metrics", inline(o.Metrics, shownText))
	}
	if o.Evidence > 0 {
		w.key("evidence", fmt.Sprintf("%d (--json has it)", o.Evidence))
	}
}

// text writes a text of the head, none where it is empty.
func (w *writer) text(name, text string) {
	if text != "" {
		w.field("", keyWidth, plain, Field{Name: name, Text: text, Len: len(text)})
	}
}

// nameColumns is how wide the names of fields stand, with the gap behind them.
func nameColumns(fields []Field) int {
	width := 0
	for _, f := range fields {
		width = max(width, min(maxName, vt.StringWidth(visible.Line(f.Name)))+2)
	}
	return width
}

// field writes a name and a text: beside it where it is one line, indented below it where it is more.
func (w *writer) field(indent string, width int, s style, f Field) {
	lines := strings.Split(strings.TrimRight(f.Text, "\n"), "\n")
	name := newRow(unlimited, w.o.Colour).put(plain, indent)
	if len(lines) == 1 {
		w.line(name.column(dim, pad(visible.Line(f.Name), width-1), width).put(s, w.kept(lines[0])))
		return
	}
	w.line(name.put(dim, f.Name))
	left := 0
	if most := w.o.MaxLines; most > 0 && len(lines) > most {
		lines, left = lines[:most], len(lines)-most
	}
	for _, l := range lines {
		l = strings.ReplaceAll(strings.TrimSuffix(l, "\r"), "\t", "    ")
		if l == "" {
			w.w.WriteByte('\n')
			continue
		}
		w.line(newRow(unlimited, w.o.Colour).put(plain, indent+"    ").put(s, w.kept(l)))
	}
	if left > 0 {
		said := fmt.Sprintf("%s %d more lines, %d bytes in all: --full shows them", ellipsis, left, f.Len)
		w.line(newRow(unlimited, w.o.Colour).put(plain, indent+"    ").put(dim, said))
	}
}

// kept is as much of one line as is shown.
func (w *writer) kept(line string) string {
	if w.o.MaxLines == 0 || len(line) <= shownText {
		return line
	}
	return clip(line, shownText) + fmt.Sprintf("%s (%d bytes: --full shows them)", ellipsis, len(line))
}

// A ListRow is a run in a list of runs.
type ListRow struct {
	Run, Agent, Intent string
	Status             string
	Turns              int
	Started, Ended     time.Time // Ended is zero while it goes on
}

// List is a list of runs as a table, a line each of at most cols columns, where ids are cut to what tells those of the list apart; cols
// less than 0 has everything whole. Times are shown as they are, in their own zones.
func List(rows []ListRow, now time.Time, cols int) string {
	idLen := 0
	if cols >= 0 {
		idLen = distinct(rows)
	}
	var table, out strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "WHEN\tRUN\tAGENT\tSTATUS\tTURNS\t%6s\tINTENT\n", "TOOK") // numbers stand to the right
	for i := range rows {
		rows[i].write(w, now, idLen)
	}
	w.Flush() // into memory
	for line := range strings.Lines(table.String()) {
		if line = strings.TrimSuffix(line, "\n"); cols >= 0 {
			line = fit(line, cols)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// distinct is how many bytes of their ids tell the runs of a list apart, at least 8.
func distinct(rows []ListRow) int {
	n, longest := 8, 0
	for i := range rows {
		longest = max(longest, len(rows[i].Run))
	}
	for ; n < longest; n++ {
		seen := make(map[string]bool, len(rows))
		for i := range rows {
			seen[clip(rows[i].Run, n)] = true
		}
		if len(seen) == len(rows) {
			break
		}
	}
	return n
}

// shortAgent is in how many columns an agent is shown where lines are cut.
const shortAgent = 12

// write writes the cells of a row; of the id idLen bytes, 0 for all.
func (l *ListRow) write(w *tabwriter.Writer, now time.Time, idLen int) {
	id, agent := l.Run, visible.Line(l.Agent)
	if idLen > 0 {
		id, agent = clip(id, idLen), fit(agent, shortAgent)
	}
	took := "-"
	switch {
	case !l.Ended.IsZero():
		took = Duration(max(0, l.Ended.Sub(l.Started)))
	case l.Status == InProgress:
		took = elapsed(max(0, now.Sub(l.Started)))
	}
	status := strings.ReplaceAll(visible.Line(l.Status), "_", " ")
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%5d\t%6s\t%s\n", when(l.Started, now), visible.Line(id), agent, status, l.Turns, took,
		visible.Line(oneLine(l.Intent)))
}

// when is a moment of today as a time of day, any other with its date.
func when(t, now time.Time) string {
	y, m, d := t.Date()
	if ny, nm, nd := now.Date(); y == ny && m == nm && d == nd {
		return t.Format("15:04:05")
	}
	if y == now.Year() {
		return t.Format("01-02 15:04")
	}
	return t.Format("2006-01-02")
}

// A Range is which turns are wanted, by their index from 0, both ends included. Zero is none; AllTurns is all.
type Range struct{ from, to int }

// AllTurns is the range of every turn.
var AllTurns = Range{to: int(^uint(0) >> 1)}

// Has reports whether a turn is wanted.
func (r Range) Has(index int) bool { return index >= r.from && index <= r.to }

// ParseRange reads "3", "2..5", "2.." or "..5"; "" is AllTurns.
func ParseRange(s string) (Range, error) {
	if s == "" {
		return AllTurns, nil
	}
	first, last, ranged := strings.Cut(s, "..")
	if !ranged {
		last = first
	}
	r := AllTurns
	errFirst, errLast := parseIndex(first, &r.from), parseIndex(last, &r.to)
	if errFirst != nil || errLast != nil || first+last == "" || r.from > r.to {
		return Range{}, fmt.Errorf(`%.40q is no turn: want "3", or a range as "2..5", "2.." or "..5", of turns from 0`, s)
	}
	return r, nil
}

// parseIndex reads an end of a range; "" leaves it where it is.
func parseIndex(s string, to *int) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	*to = int(n)
	return err
}

const (
	keptText   = 2 << 10 // bytes of one text that a Run keeps for its picture
	keptFields = 24      // of the parameters or the output of one turn
)

// A Field is a named part of what a tool was given or gave, or all of it where that is no object: Name is "" then.
type Field struct {
	Name string
	Text string // a string as it is, any other value as JSON
	Len  int    // bytes of the whole text
}

// fieldsOf takes a value apart. Of each text max bytes are kept, and keptFields fields; 0 keeps all.
func fieldsOf(value json.RawMessage, max int) []Field {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if value[0] != '{' {
		return []Field{field("", value, max)}
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	if _, err := dec.Token(); err != nil {
		return []Field{field("", value, max)}
	}
	var out []Field
	for dec.More() {
		name, err := dec.Token()
		var v json.RawMessage
		if err == nil {
			err = dec.Decode(&v)
		}
		if err != nil { // a record's values are JSON: this is none
			return []Field{field("", value, max)}
		}
		if max > 0 && len(out) == keptFields {
			out = append(out, Field{Name: ellipsis})
			break
		}
		text, _ := name.(string)
		out = append(out, field(text, v, max))
	}
	return out
}

func field(name string, value json.RawMessage, max int) Field {
	text := textOf(value)
	f := Field{Name: name, Text: text, Len: len(text)}
	if max > 0 {
		f.Name, f.Text = strings.Clone(clip(name, max)), strings.Clone(clip(text, max))
	}
	return f
}

// textOf is a string as it is, and any other value as JSON without spaces.
func textOf(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// inline is all of fields on one line: name=text, as far as max bytes.
func inline(fields []Field, max int) string {
	var b strings.Builder
	for _, f := range fields {
		if b.Len() > max {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if f.Name != "" {
			b.WriteString(f.Name)
			b.WriteByte('=')
		}
		b.WriteString(clip(strings.TrimSpace(f.Text), max))
	}
	return b.String()
}

const ellipsis = "…"

// fit returns as much of text, which must be visible, as goes into cols columns, with an ellipsis where something is left out.
func fit(text string, cols int) string {
	if len(text) <= cols { // no text takes more columns than bytes
		return text
	}
	switch {
	case columns(text, cols) == len(text):
		return text
	case cols < 1:
		return ""
	}
	return text[:columns(text, cols-1)] + ellipsis
}

// pad is text in exactly cols columns.
func pad(text string, cols int) string {
	text = fit(text, cols)
	return text + strings.Repeat(" ", max(0, cols-vt.StringWidth(text)))
}

// wrap returns the first rows rows of text, whose lines are broken at cols columns, and how many of its lines were left out.
// Lines are visible; a tab is two spaces.
func wrap(text string, cols, rows int) (out []string, left int) {
	cols = max(cols, 2) // a wide character must fit
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		line = visible.Line(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "  "))
		for first := true; first || line != ""; first = false {
			if len(out) == rows {
				return out, len(lines) - i
			}
			n := columns(line, cols)
			out = append(out, line[:n])
			line = line[n:]
		}
	}
	return out, 0
}

// columns is how many bytes of text go into cols columns.
func columns(text string, cols int) int {
	at := 0
	for used := 0; at < len(text); {
		cluster, w := vt.FirstCluster(text[at:])
		if used+w > cols {
			break
		}
		at, used = at+len(cluster), used+w
	}
	return at
}

// clip is text without what stands behind its first n bytes, cut where a character begins.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}

// Duration is how long something took, for people: 340ms, 42s, 3m 05s, 2h 10m, 3d 4h.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	}
	return elapsed(d)
}

// elapsed is Duration in whole seconds, for a clock that runs.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	const day = 24 * time.Hour
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}

// A style is how a text is drawn: the parameters of SGR, "" for plain.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	cyan    style = "36"
	refused style = "1;35"
	broken  style = "1;31"
	focused style = "7"
)

// unlimited is for rows of any width.
const unlimited = -1

// A row is one line of at most cols columns.
type row struct {
	b            strings.Builder
	cols, used   int
	colour, full bool
}

func newRow(cols int, colour bool) *row { return &row{cols: cols, colour: colour} }

// put adds text, one line of it whatever it holds, as far as it fits.
func (r *row) put(s style, text string) *row {
	if r.full || text == "" {
		return r
	}
	text = visible.Line(text)
	if r.cols != unlimited {
		if kept := fit(text, r.cols-r.used); kept != text {
			text, r.full = kept, true
		}
	}
	r.used += vt.StringWidth(text)
	if !r.colour || s == plain || text == "" {
		r.b.WriteString(text)
		return r
	}
	r.b.WriteString("\x1b[" + string(s) + "m" + text + "\x1b[0m") // text holds no other control
	return r
}

// column adds text in exactly cols columns.
func (r *row) column(s style, text string, cols int) *row {
	return r.put(s, pad(visible.Line(text), cols))
}

// left is how many columns are left.
func (r *row) left() int { return r.cols - r.used }

func (r *row) String() string { return r.b.String() }
