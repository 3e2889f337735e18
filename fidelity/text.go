package fidelity

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// TextOptions say how WriteText writes. nil and the zero value work.
type TextOptions struct {
	Color      bool // ANSI colours: red for what was, green for what is now, the words that differ reversed or in bold
	Width      int  // columns; longer lines are cut, but for the verdict, the first divergence, causes and notes. 0 cuts none
	SideBySide bool // what was recorded on the left, the replay on the right; a Width of 0 is 100 then, a smaller one than 40 is 40
}

// Limits of what WriteText shows of each part; the JSON holds the rest.
const (
	shownPerLane = 4
	shownNotes   = 20
	shownInRun   = 3 // records in a row that one side has alone, which read as one line from here on
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
	t.headline(r)
	if len(r.NotCompared) > 0 {
		t.list("not compared, so the verdict is not green:", r.NotCompared, len(r.NotCompared))
	}
	if len(r.Divergences) > 0 {
		t.first(r)
		t.others(r.Divergences[1:], r.Omitted)
	}
	if len(r.Masked) > 0 {
		t.line(0, plain, "masked: "+masks(r.Masked))
	}
	if len(r.NotCovered) > 0 {
		t.write(0, plain, printable("not covered: "+strings.Join(r.NotCovered, ", ")))
	}
	if len(r.Notes) > 0 {
		t.list("notes:", r.Notes, shownNotes)
	}
	return t.w.Flush()
}

// textWriter writes lines; the buffer keeps the first error.
type textWriter struct {
	w *bufio.Writer
	o TextOptions
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
	t.write(indent, style, t.cut(indent, printable(s)))
}

// cut shortens a printable line to what the width leaves.
func (t *textWriter) cut(indent int, s string) string {
	if room := t.o.Width - indent; t.o.Width > 0 && room > 1 && widthOf(s) > room {
		return wrap([]segment{{text: s}}, room-1)[0].text() + "…"
	}
	return s
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

func (t *textWriter) headline(r *Report) {
	style := bold + green
	if !r.Faithful() {
		style = bold + red
	}
	t.write(0, style, r.String())
}

// first writes the first divergence in full.
func (t *textWriter) first(r *Report) {
	d := &r.Divergences[0]
	t.write(0, bold, "first divergence: "+printable(d.Message))
	t.line(2, plain, where(d)+string(d.Category))
	t.columns(d)
	t.cause(d)
	if r.Total() > 1 && d.Follows == "" && r.Crossed != nil && *r.Crossed == 0 && d.Seq != nil {
		t.write(4, plain, "nothing before it differs, so it is taken for the cause of what follows")
	}
}

// columns writes the two records side by side, where that is asked for.
func (t *textWriter) columns(d *Divergence) {
	if !t.o.SideBySide {
		return
	}
	t.sideBySide(4, []segment{{text: "recorded"}}, []segment{{text: "replay"}}, bold, bold)
	none := "(nothing)"
	if d.Recorded == "" && d.Replay == "" {
		return
	}
	was, now := cmp.Or(printable(d.Recorded), none), cmp.Or(printable(d.Replay), none)
	a, b := segments(was, now)
	t.sideBySide(4, a, b, plain, plain)
}

// cause writes everything that is known of why a divergence is there, uncut: what differs is what the reader came for.
func (t *textWriter) cause(d *Divergence) {
	if len(d.Changes) == 0 {
		t.lines(d.Cause)
		return
	}
	if d.Nearest != nil {
		t.lines(d.nearest())
	}
	for i := range d.Changes {
		t.change(4, &d.Changes[i], false)
	}
	if d.MoreChanges > 0 {
		t.write(4, plain, fmt.Sprintf("and %d more", d.MoreChanges))
	}
	t.lines(d.Follows)
}

func (t *textWriter) lines(s string) {
	if s == "" {
		return
	}
	for line := range strings.SplitSeq(s, "\n") {
		t.write(4, plain, printable(line))
	}
}

// change writes one change: its path, and what was and what is now below or beside each other.
func (t *textWriter) change(indent int, c *Change, short bool) {
	t.line(indent, plain, c.Heading())
	was, now := segments(printable(c.Was), printable(c.Now))
	switch {
	case c.Op == Moved:
	case t.o.SideBySide:
		t.sideBySide(indent+2, was, now, red, green)
	default:
		if c.Was != "" {
			t.marked(indent+2, "- ", was, red, short)
		}
		if c.Now != "" {
			t.marked(indent+2, "+ ", now, green, short)
		}
	}
	if c.Coarse != "" {
		t.line(indent+2, plain, "("+c.Coarse+")")
	}
}

// marked writes a line of a diff, its changed words reversed, cut to the width where it is a short one.
func (t *textWriter) marked(indent int, mark string, segs []segment, style string, short bool) {
	if room := t.o.Width - indent - len(mark); short && t.o.Width > 0 && room > 1 && segmentsWidth(segs) > room {
		segs = wrap(segs, room-1)[0]
		segs = append(segs, segment{text: "…"})
	}
	if !t.o.Color {
		t.write(indent, plain, mark+line(segs).text())
		return
	}
	var b strings.Builder
	b.WriteString(style + mark)
	for _, s := range segs {
		if s.changed {
			b.WriteString(reverse + s.text + reset + style)
		} else {
			b.WriteString(s.text)
		}
	}
	t.write(indent, plain, b.String()+reset)
}

// sideBySide writes two texts beside each other, as many rows as the longer one needs.
func (t *textWriter) sideBySide(indent int, was, now []segment, styleA, styleB string) {
	left := (t.o.Width-3)/2 - indent // the bar stands in one column, whatever the indent
	as, bs := wrap(was, left), wrap(now, t.o.Width-left-indent-3)
	for i := range max(len(as), len(bs)) {
		var a, b line
		if i < len(as) {
			a = as[i]
		}
		if i < len(bs) {
			b = bs[i]
		}
		row := t.cell(a, styleA) + strings.Repeat(" ", max(left-segmentsWidth(a), 0)) + " │ " + t.cell(b, styleB)
		fmt.Fprintf(t.w, "%*s%s\n", indent, "", strings.TrimRight(row, " "))
	}
}

// cell is one line of a column: its changed words in the style, and in bold.
func (t *textWriter) cell(l line, style string) string {
	var b strings.Builder
	for _, s := range l {
		switch {
		case s.changed && style != plain:
			b.WriteString(t.styled(bold+style, s.text))
		case style == bold:
			b.WriteString(t.styled(bold, s.text))
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
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

// others writes the further divergences by lane, in order of the lanes' first.
func (t *textWriter) others(ds []Divergence, omitted int) {
	var lanes []string
	byLane := make(map[string][]*Divergence)
	for i := range ds {
		lane := ds[i].Lane
		if byLane[lane] == nil {
			lanes = append(lanes, lane)
		}
		byLane[lane] = append(byLane[lane], &ds[i])
	}
	if len(lanes) > 0 {
		t.line(0, bold, fmt.Sprintf("then %d more:", len(ds)+omitted))
	}
	for _, lane := range lanes {
		t.line(2, plain, fmt.Sprintf("%s (%d)", cmp.Or(lane, "records"), len(byLane[lane])))
		t.ofLane(byLane[lane])
	}
}

// ofLane writes the further divergences of one lane. Many records in a row that one side has alone are one line.
func (t *textWriter) ofLane(ds []*Divergence) {
	for shown := 0; len(ds) > 0; shown++ {
		if shown == shownPerLane {
			t.line(4, plain, fmt.Sprintf("and %d more", len(ds)))
			return
		}
		n := run(ds)
		if n >= shownInRun {
			t.line(4, plain, fmt.Sprintf("seq %d to %d: %d in a row %s, the first %s", *ds[0].Seq, *ds[n-1].Seq, n,
				sideOf(ds[0]), cmp.Or(ds[0].Recorded, ds[0].Replay)))
			ds = ds[n:]
			continue
		}
		t.other(ds[0])
		ds = ds[1:]
	}
}

// run is how many divergences at the start of ds are about records in a row that one side has alone.
func run(ds []*Divergence) int {
	n := 1
	for n < len(ds) && ds[n].Category == ds[0].Category && sideOf(ds[0]) != "" && *ds[n].Seq == *ds[n-1].Seq+1 {
		n++
	}
	return n
}

func sideOf(d *Divergence) string {
	switch d.Category {
	case MissingInRecorded:
		return "in the replay and not recorded"
	case MissingInReplay:
		return "recorded and not in the replay"
	}
	return ""
}

// other writes a further divergence: its line, its first change, and what it follows from.
func (t *textWriter) other(d *Divergence) {
	seq := ""
	if d.Seq != nil {
		seq = fmt.Sprintf("seq %d ", *d.Seq)
	}
	t.line(4, plain, seq+d.Message)
	if len(d.Changes) > 0 {
		t.change(6, &d.Changes[0], true)
		if more := len(d.Changes) - 1 + d.MoreChanges; more > 0 {
			t.line(6, plain, fmt.Sprintf("and %d more", more))
		}
	}
	if d.Follows != "" {
		t.line(6, plain, d.Follows)
	}
}

func (t *textWriter) list(title string, items []string, limit int) {
	t.line(0, bold, title)
	for i, item := range items {
		if i == limit {
			t.line(2, plain, fmt.Sprintf("and %d more", len(items)-i))
			return
		}
		t.write(2, plain, printable(item))
	}
}

// masks lists masks and their counts by name.
func masks(m map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(out, ", ")
}

// printable escapes control characters, and those that turn the direction of writing, so that nothing on a tape moves the
// reader's cursor or rearranges what stands beside it.
func printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
