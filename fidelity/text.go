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
	"unicode/utf8"
)

// TextOptions say how WriteText writes. nil and the zero value work.
type TextOptions struct {
	Color bool // ANSI colours: red for what was, green for what is now
	Width int  // columns; longer lines are cut, but for the verdict, the first divergence, causes and notes. 0 cuts none
}

// Limits of what WriteText shows of each part; the JSON holds the rest.
const (
	shownPerLane = 4
	shownNotes   = 20
)

// WriteText writes the report for a person: the verdict, what could not be compared, the first divergence with its cause,
// the others by lane, then masks and notes. The error is the writer's.
// Control characters that came with the data are escaped.
func (r *Report) WriteText(w io.Writer, o *TextOptions) error {
	t := &textWriter{w: bufio.NewWriter(w)}
	if o != nil {
		t.o = *o
	}
	t.headline(r)
	if len(r.NotCompared) > 0 {
		t.list("not compared, so the verdict is not green:", r.NotCompared, len(r.NotCompared))
	}
	if len(r.Divergences) > 0 {
		t.first(&r.Divergences[0])
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
	plain = ""
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	reset = "\x1b[0m"
)

// line writes one line, cut to the width.
func (t *textWriter) line(indent int, style, s string) {
	s = printable(s)
	if room := t.o.Width - indent; t.o.Width > 0 && utf8.RuneCountInString(s) > room && room > 1 {
		s = string([]rune(s)[:room-1]) + "…"
	}
	t.write(indent, style, s)
}

func (t *textWriter) write(indent int, style, s string) {
	if style != plain && t.o.Color {
		s = style + s + reset
	}
	fmt.Fprintf(t.w, "%*s%s\n", indent, "", s)
}

func (t *textWriter) headline(r *Report) {
	style := bold + green
	if !r.Faithful() {
		style = bold + red
	}
	t.write(0, style, r.String())
}

// first writes one divergence in full.
func (t *textWriter) first(d *Divergence) {
	t.write(0, bold, "first: "+printable(d.Message))
	t.line(2, plain, where(d)+string(d.Category))
	t.cause(d.Cause)
}

// cause writes every line of a cause, uncut: what differs is what the reader came for.
func (t *textWriter) cause(cause string) {
	if cause == "" {
		return
	}
	for line := range strings.SplitSeq(cause, "\n") {
		style := plain
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "- "):
			style = red
		case strings.HasPrefix(trimmed, "+ "):
			style = green
		}
		t.write(4, style, printable(line))
	}
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
		t.line(2, plain, fmt.Sprintf("%s (%d)", cmp.Or(lane, "by position"), len(byLane[lane])))
		for i, d := range byLane[lane] {
			if i == shownPerLane {
				t.line(4, plain, fmt.Sprintf("and %d more", len(byLane[lane])-i))
				break
			}
			t.other(d)
		}
	}
}

// other writes a further divergence: its line, and the words that differ when they are few.
func (t *textWriter) other(d *Divergence) {
	seq := ""
	if d.Seq != nil {
		seq = fmt.Sprintf("seq %d ", *d.Seq)
	}
	t.line(4, plain, seq+d.Message)
	lines := strings.SplitN(d.Cause, "\n", 4)
	for _, line := range lines[:min(len(lines), 3)] {
		if strings.HasPrefix(line, "  - ") {
			t.line(6, red, line)
		} else if strings.HasPrefix(line, "  + ") {
			t.line(6, green, line)
		}
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

// printable escapes control characters, so that nothing on a tape moves the reader's cursor.
func printable(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
