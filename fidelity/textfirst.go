package fidelity

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// lead is the place of the divergence that comes first for a person: the first one that is no drift of times, which says
// nothing of why two runs differ; 0 where there is no other.
func (r *Report) lead() int {
	for i := range r.Divergences {
		if !drift(r.Divergences[i].Category) {
			return i
		}
	}
	return 0
}

// first writes the first divergence in full.
func (t *textWriter) first(r *Report, lead int) {
	d := &r.Divergences[lead]
	t.write(0, bold, "first divergence: "+visible.Line(d.Message))
	t.line(2, plain, where(d)+string(d.Category))
	t.columns(r.names, d)
	t.cause(d)
	t.claim(r, d, lead)
	t.lines(d.Hint)
	t.remarks(4, d)
}

// claim says that the first divergence is taken for the cause of the others, where nothing nearer is known.
func (t *textWriter) claim(r *Report, d *Divergence, lead int) {
	if r.Total() == 1 || drift(d.Category) || d.Follows != "" || r.Crossed == nil || *r.Crossed != 0 || d.Seq == nil {
		return
	}
	if lead == 0 {
		t.write(4, plain, "nothing before it differs, so it is taken for the cause of what follows")
	} else {
		t.write(4, plain, "nothing but times differs before it, so it is taken for the cause of what follows")
	}
}

// columns writes the two records side by side, where that is asked for.
func (t *textWriter) columns(names sideNames, d *Divergence) {
	if !t.o.SideBySide {
		return
	}
	t.sideBySide(4, []columns.Segment{{Text: names.of(Recorded)}}, []columns.Segment{{Text: names.of(Replay)}}, bold, bold)
	none := "(nothing)"
	if d.Recorded == "" && d.Replay == "" {
		return
	}
	was, now := cmp.Or(visible.Line(d.Recorded), none), cmp.Or(visible.Line(d.Replay), none)
	a, b := columns.Segments(was, now)
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
		t.change(4, &d.Changes[i])
	}
	t.more(4, d, d.MoreChanges)
	t.lines(d.Exchange)
	t.lines(d.Follows)
}

// more writes the changes of d that are not among its first, or how many are left out.
func (t *textWriter) more(indent int, d *Divergence, left int) {
	if t.o.All {
		for i := range d.rest {
			t.change(indent, &d.rest[i])
		}
		left -= len(d.rest)
	}
	if left > 0 {
		t.left = t.left || !t.o.All
		t.line(indent, plain, fmt.Sprintf("and %d more", left))
	}
}

func (t *textWriter) lines(s string) {
	if s == "" {
		return
	}
	for line := range strings.SplitSeq(s, "\n") {
		t.write(4, plain, visible.Line(line))
	}
}

// change writes one change: its path, and what was and what is now below or beside each other.
func (t *textWriter) change(indent int, c *Change) {
	t.line(indent, plain, c.Heading())
	t.values(indent+2, c)
	if c.Coarse != "" {
		t.line(indent+2, plain, "("+c.Coarse+")")
	}
}

// values writes what was and what is now.
func (t *textWriter) values(indent int, c *Change) {
	was, now := columns.Segments(visible.Line(c.Was), visible.Line(c.Now))
	if c.Op == Moved {
		return
	}
	if t.o.SideBySide {
		t.sideBySide(indent, was, now, red, green)
		return
	}
	if c.Was != "" {
		t.marked(indent, "- ", was, red)
	}
	if c.Now != "" {
		t.marked(indent, "+ ", now, green)
	}
	if c.Marks != "" && !t.o.Color {
		t.line(indent, plain, "  "+c.Marks)
	}
}

// marked writes a line of a diff, its changed words reversed.
func (t *textWriter) marked(indent int, mark string, segs []columns.Segment, style string) {
	if !t.o.Color {
		t.write(indent, plain, mark+columns.Line(segs).Text())
		return
	}
	var b strings.Builder
	b.WriteString(style + mark)
	for _, s := range columns.Line(segs).Merged() {
		if s.Changed {
			b.WriteString(reverse + s.Text + reset + style)
		} else {
			b.WriteString(s.Text)
		}
	}
	t.write(indent, plain, b.String()+reset)
}

// sideBySide writes two texts beside each other, as many rows as the longer one needs.
func (t *textWriter) sideBySide(indent int, was, now []columns.Segment, styleA, styleB string) {
	left := (t.o.Width-3)/2 - indent // the bar stands in one column, whatever the indent
	as, bs := columns.Wrap(was, left), columns.Wrap(now, t.o.Width-left-indent-3)
	for i := range max(len(as), len(bs)) {
		var a, b columns.Line
		if i < len(as) {
			a = as[i]
		}
		if i < len(bs) {
			b = bs[i]
		}
		row := t.cell(a, styleA) + strings.Repeat(" ", max(left-columns.WidthOf(a), 0)) + " │ " + t.cell(b, styleB)
		fmt.Fprintf(t.w, "%*s%s\n", indent, "", strings.TrimRight(row, " "))
	}
}

// cell is one line of a column: its changed words in the style, and in bold.
func (t *textWriter) cell(l columns.Line, style string) string {
	var b strings.Builder
	for _, s := range l.Merged() {
		switch {
		case s.Changed && style != plain:
			b.WriteString(t.styled(bold+style, s.Text))
		case style == bold:
			b.WriteString(t.styled(bold, s.Text))
		default:
			b.WriteString(s.Text)
		}
	}
	return b.String()
}
