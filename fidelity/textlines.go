package fidelity

import (
	"bufio"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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
