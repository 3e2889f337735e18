package runview

import (
	"bufio"
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
