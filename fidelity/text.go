package fidelity

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// TextOptions say how WriteText writes. nil and the zero value work.
type TextOptions struct {
	Color      bool // ANSI colours: red for what was, green for what is now, the words that differ reversed or in bold
	Width      int  // columns; longer lines are cut, but for the verdict, the first divergence, values, causes and notes. 0 cuts none
	SideBySide bool // what was recorded on the left, the replay on the right; a Width of 0 is 100 then, a smaller one than 40 is 40
	// All writes every divergence that the report lists, none folded and no line cut.
	All bool
	// More says how to come by what was left out, such as "--all". It is said where something was; empty says nothing.
	More string
}

// Limits of what WriteText shows of each part, unless all is asked for; the JSON holds the rest.
const (
	shownPerLane  = 4
	shownNotes    = 20
	foldedRefusal = 3 // divergences that follow from one refused request, which read as one block from here on
	shownSubjects = 3 // of each kind in that block
)

// WriteText writes the report for a person: the verdict, what could not be compared, the first divergence with its cause,
// the others by lane, then masks and notes. The error is the writer's.
// Control characters that came with the data are escaped.
func (r *Report) WriteText(w io.Writer, o *TextOptions) error {
	t := &textWriter{w: bufio.NewWriter(w)}
	if o != nil {
		t.o = *o
	}
	if t.o.SideBySide {
		t.o.Width = max(cmp.Or(t.o.Width, 100), 40)
	}
	style := bold + green
	if !r.Faithful() {
		style = bold + red
	}
	t.write(0, style, r.String())
	if said := r.sideLine(); said != "" {
		t.write(0, plain, visible.Line(said))
	}
	if len(r.NotCompared) > 0 {
		t.list("not compared, so the verdict is not green:", r.NotCompared, len(r.NotCompared))
	}
	if len(r.Divergences) > 0 {
		lead := r.lead()
		t.first(r, lead)
		t.others(r, slices.Concat(r.Divergences[:lead:lead], r.Divergences[lead+1:]))
	}
	t.masked(r)
	said := func(gap string) bool { return slices.Contains(r.NotCompared, gap) }
	if gaps := slices.DeleteFunc(slices.Clone(r.NotCovered), said); len(gaps) > 0 {
		t.write(0, plain, visible.Line("not covered: "+Uncovered(gaps, r.usual)))
	}
	if len(r.Notes) > 0 {
		t.list("notes:", r.Notes, shownNotes)
	}
	if t.left && t.o.More != "" {
		t.line(0, plain, "("+t.o.More+" shows the rest)")
	}
	return t.w.Flush()
}

// masked lists what masks hid, a place a line: first what leaves a doubt.
func (t *textWriter) masked(r *Report) {
	var doubtful, settled []string
	for i := range r.MaskedPairs {
		if p := &r.MaskedPairs[i]; p.Settled {
			settled = append(settled, p.String())
		} else {
			doubtful = append(doubtful, p.String())
		}
	}
	if len(doubtful) > 0 {
		t.list("masked, so nothing tells whether these differ by chance:", doubtful, shownNotes)
	}
	if len(settled) > 0 {
		t.list("masked, as you set it or as no run can give it again:", settled, shownNotes)
	}
	if r.MoreMaskedPairs > 0 {
		t.line(2, plain, fmt.Sprintf("and %d more that are not listed", r.MoreMaskedPairs))
	}
}

// sideLine says of side traffic that it differs; "" where it does not.
func (r *Report) sideLine() string {
	if len(r.Side) == 0 {
		return ""
	}
	var all []string
	for i := range r.Side {
		all = append(all, r.Side[i].in(r.names))
	}
	said := "side traffic differs: " + strings.Join(all, "; ")
	if r.Faithful() {
		said = cmp.Or(r.matched(), "all else matched") + "; " + said
	}
	return said
}

// matched says how many calls of models a faithful report is about.
func (r *Report) matched() string {
	switch r.ModelCalls {
	case 0:
		return ""
	case 1:
		return "the one model call matched"
	}
	return fmt.Sprintf("all %d model calls matched", r.ModelCalls)
}

// others writes the further divergences by lane, in order of the lanes' first. What follows from a refused request is one
// block, and so are mere drifts of times.
func (t *textWriter) others(r *Report, ds []Divergence) {
	if len(ds) == 0 {
		return
	}
	follow := 0
	for i := range ds {
		if ds[i].afterRefusal {
			follow++
		}
	}
	fold := follow >= foldedRefusal && !t.o.All
	var folded []*Divergence
	drifts := make(map[Category]int)
	var lanes []string
	byLane := make(map[string][]*Divergence)
	for i := range ds {
		d := &ds[i]
		switch {
		case fold && d.afterRefusal:
			folded = append(folded, d)
			continue
		case drift(d.Category) && !t.o.All:
			drifts[d.Category]++
			continue
		}
		if byLane[d.Lane] == nil {
			lanes = append(lanes, d.Lane)
		}
		byLane[d.Lane] = append(byLane[d.Lane], d)
	}
	then := fmt.Sprintf("then %d more:", len(ds)+r.Omitted)
	if len(folded) == len(ds) && r.Omitted == 0 {
		then = fmt.Sprintf("then %d more, which follow from the refused request:", len(ds))
	}
	t.line(0, bold, then)
	for _, lane := range lanes {
		t.line(2, plain, fmt.Sprintf("%s (%d)", cmp.Or(lane, "records"), len(byLane[lane])))
		t.ofLane(byLane[lane])
	}
	if len(folded) > 0 && len(folded) < len(ds)+r.Omitted {
		t.line(2, plain, fmt.Sprintf("%d that follow from the refused request:", len(folded)))
		t.folded(4, folded)
	} else {
		t.folded(2, folded)
	}
	if len(drifts) > 0 {
		t.left = true
		t.line(2, plain, "times that drifted: "+strings.Join(countsOf(drifts), ", "))
	}
}

// ofLane writes the further divergences of one lane. Where some are left out, the weightiest are shown.
func (t *textWriter) ofLane(ds []*Divergence) {
	if len(ds) > shownPerLane && !t.o.All {
		slices.SortStableFunc(ds, func(a, b *Divergence) int { return cmp.Compare(weight(a), weight(b)) })
	}
	for i, d := range ds {
		if i == shownPerLane && !t.o.All {
			t.left = true
			t.line(4, plain, fmt.Sprintf("and %d more", len(ds)-i))
			return
		}
		t.other(d)
	}
}

// weight orders divergences where not all are shown: whole exchanges and processes that were inserted, removed or moved,
// then other whole records, then fields.
func weight(d *Divergence) int {
	switch d.Category {
	case MissingInRecorded, MissingInReplay, RecordMoved, KindMismatch:
		kind, _, _ := strings.Cut(cmp.Or(d.Recorded, d.Replay), " ")
		switch kind {
		case "llm_call", "http_exchange", "process_spawn", "mcp_json_rpc", "mcp_open", "ws_open":
			return 0
		}
		return 1
	}
	return 2
}

func alone(d *Divergence) bool {
	return d.Category == MissingInRecorded || d.Category == MissingInReplay
}

// side is the one that has the record, of a divergence of one that stands alone.
func (d *Divergence) side() Side {
	if d.Category == MissingInRecorded {
		return Replay
	}
	return Recorded
}

// other writes a further divergence: its line, its first change, and what it follows from.
func (t *textWriter) other(d *Divergence) {
	seq := ""
	if d.Seq != nil {
		seq = fmt.Sprintf("seq %d ", *d.Seq)
	}
	if len(d.Changes) > 0 || alone(d) {
		t.line(4, plain, seq+d.Message)
	} else { // the values of a field, which nothing else shows
		t.write(4, plain, seq+visible.Line(d.Message))
	}
	if !d.whole || t.tooWide(4, seq+d.Message) {
		t.changes(d)
	}
	if d.Follows != "" {
		t.line(6, plain, d.Follows)
	}
	t.remarks(6, d)
}

// changes writes the first change of a further divergence, or all.
func (t *textWriter) changes(d *Divergence) {
	shown := len(d.Changes)
	if !t.o.All {
		shown = min(shown, 1)
	}
	for i := range d.Changes[:shown] {
		t.change(6, &d.Changes[i])
	}
	t.more(6, d, len(d.Changes)-shown+d.MoreChanges)
}

// folded writes what follows from a refused request: a line for each kind of it.
func (t *textWriter) folded(indent int, ds []*Divergence) {
	if len(ds) == 0 {
		return
	}
	t.left = true
	var order []string
	subjects := make(map[string][]string)
	count := make(map[string]int)
	for _, d := range ds {
		what, subject := consequence(d)
		if count[what]++; count[what] == 1 {
			order = append(order, what)
		}
		if subject != "" && !slices.Contains(subjects[what], subject) {
			subjects[what] = append(subjects[what], subject)
		}
	}
	for _, what := range order {
		s := what
		if all := subjects[what]; len(all) > 0 {
			s = fmt.Sprintf("%s (%d): %s", what, count[what], list(all, shownSubjects))
		} else if count[what] > 1 {
			s = fmt.Sprintf("%s (%d)", what, count[what])
		}
		t.line(indent, plain, s)
	}
}

// consequences say of a kind of records what it is that one side alone has them, the recorded one and the replay.
var consequences = map[string][2]string{
	"llm_call":      {"calls that were not made", "calls that nothing was recorded for"},
	"http_exchange": {"calls that were not made", "calls that nothing was recorded for"},
	"process_spawn": {"processes that were not run", "processes that were run and not recorded"},
	"mcp_json_rpc":  {"calls of tool servers that were not made", "calls of tool servers that nothing was recorded for"},
	"ws_message":    {"messages that did not pass", "messages that passed and were not recorded"},
	"file_write":    {"files that were left alone", "files that were changed and not recorded so"},
	"file_delete":   {"files that were left alone", "files that were changed and not recorded so"},
}

// consequence says what a divergence is as one of many that follow from a refused request, and what it is about.
func consequence(d *Divergence) (what, subject string) {
	switch d.Lane {
	case laneProgram:
		return d.Message, ""
	case laneTerminal:
		return "what the terminal showed", ""
	}
	kind, subject, _ := strings.Cut(cmp.Or(d.Recorded, d.Replay), " ")
	if !alone(d) {
		return titleOf(d.Category), subject
	}
	if what, ok := consequences[kind]; ok {
		return what[d.side()], subject
	}
	return [2]string{"records that are missing", "records that were added"}[d.side()], kind
}

// textWriter writes lines; the buffer keeps the first error.
type textWriter struct {
	w    *bufio.Writer
	o    TextOptions
	left bool // something was left out
}

// ANSI styles.
const (
	plain   = ""
	bold    = "\x1b[1m"
	reverse = "\x1b[7m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	reset   = "\x1b[0m"
)

// line writes one line, cut to the width.
func (t *textWriter) line(indent int, style, s string) {
	t.write(indent, style, t.cut(indent, visible.Line(s)))
}

// cut shortens a printable line to what the width leaves.
func (t *textWriter) cut(indent int, s string) string {
	if room := t.o.Width - indent; t.tooWide(indent, s) && room > 1 {
		return columns.Wrap([]columns.Segment{{Text: s}}, room-1)[0].Text() + "…"
	}
	return s
}

// tooWide reports whether a line is cut.
func (t *textWriter) tooWide(indent int, s string) bool {
	return t.o.Width > 0 && !t.o.All && columns.Width(s) > t.o.Width-indent
}

func (t *textWriter) write(indent int, style, s string) {
	fmt.Fprintf(t.w, "%*s%s\n", indent, "", t.styled(style, s))
}

// styled returns s in a style, where there are colours.
func (t *textWriter) styled(style, s string) string {
	if style == plain || !t.o.Color || s == "" {
		return s
	}
	return style + s + reset
}

// where says on which lane and record a divergence stands.
func where(d *Divergence) string {
	var s string
	if d.Lane != "" {
		s = d.Lane + ", "
	}
	if d.Seq != nil {
		s += fmt.Sprintf("seq %d, ", *d.Seq)
	}
	return s
}

func (t *textWriter) list(title string, items []string, limit int) {
	t.line(0, bold, title)
	for i, item := range items {
		if i == limit && !t.o.All {
			t.left = true
			t.line(2, plain, fmt.Sprintf("and %d more", len(items)-i))
			return
		}
		t.write(2, plain, visible.Line(item))
	}
}

// remarks writes what was noted about a divergence.
func (t *textWriter) remarks(indent int, d *Divergence) {
	for _, a := range d.Annotations {
		whose := ""
		if a.Side == "replay" {
			whose = "of the replay, "
		}
		t.line(indent, plain, "noted: "+whose+a.Text)
	}
}
