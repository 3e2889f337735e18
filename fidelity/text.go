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
	Width      int  // columns; longer lines are cut, but for the verdict, the first divergence, causes and notes. 0 cuts none
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
	shownInRun    = 3 // records in a row that one side has alone, which read as one line from here on
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
	t.headline(r)
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

func (t *textWriter) headline(r *Report) {
	style := bold + green
	if !r.Faithful() {
		style = bold + red
	}
	t.write(0, style, r.String())
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
