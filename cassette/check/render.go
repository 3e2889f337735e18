package check

import (
	"bytes"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// TextOptions say how a Result is written for people. Nil and zero work.
type TextOptions struct {
	Color   bool // with SGR sequences; what is marked is marked with ^ all the same
	Verbose bool // passed assertions, too
}

// WriteText writes r for people: each assertion that did not pass with what it wanted and what came, the screen, what came before
// it; then a line that sums up.
func (r *Result) WriteText(w io.Writer, opts *TextOptions) error {
	p := &printer{}
	if opts != nil {
		p.color, p.verbose = opts.Color, opts.Verbose
	}
	for i := range r.Assertions {
		p.outcome(r.Scenario, &r.Assertions[i])
	}
	p.sum(r)
	_, err := w.Write(p.b.Bytes())
	return err
}

// Text returns what is written of one assertion, without colours.
func (o *Outcome) Text(scenario string) string {
	p := &printer{verbose: true}
	p.outcome(scenario, o)
	return p.b.String()
}

type printer struct {
	b              bytes.Buffer
	color, verbose bool
}

// The colours, by their SGR parameters.
const (
	red    = "1;31"
	yellow = "1;33"
	green  = "32"
	dim    = "2"
	marked = "7;31"
)

func (p *printer) paint(sgr, s string) string {
	if !p.color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func (p *printer) linef(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(sprintf(format, args...), " ") + "\n")
}

func (p *printer) outcome(scenario string, o *Outcome) {
	word := map[Status]string{Passed: p.paint(green, "ok  "), Failed: p.paint(red, "FAIL"), Unchecked: p.paint(yellow, "OPEN")}[o.Status]
	if o.Status == Passed && !p.verbose {
		return
	}
	name := o.Name
	if name == "" && o.Status == Passed { // of the others the source comes next
		name, _, _ = strings.Cut(o.Source, "\n")
	}
	p.linef("%s  %s:%d:%d  %s", word, visible.Line(scenario), o.Line, o.Column, visible.Line(name))
	if o.Status == Passed {
		return
	}
	for _, line := range strings.Split(o.Source, "\n") {
		p.linef("      %s %s", p.paint(dim, "|"), visible.Line(line))
	}
	came := "came"
	if o.Status == Unchecked {
		came = "open"
	}
	p.linef("  wanted   %s", visible.Line(o.Wanted))
	p.linef("  %s     %s", came, visible.Line(o.Came))
	p.evidence(o.Evidence)
	p.linef("")
}

func (p *printer) evidence(e *Evidence) {
	if e == nil {
		return
	}
	if len(e.Frames) > 0 {
		all := make([]string, len(e.Frames))
		for i, f := range e.Frames {
			all[i] = sprintf("%s: seq %d at %s", visible.Line(f.Is), f.Seq, msText(f.TMS))
		}
		p.linef("  frames   %s", strings.Join(all, ", "))
	}
	p.excerpt(e.Screen)
	for i, n := range e.Context {
		head := "         "
		if i == 0 {
			head = "  context"
		}
		p.linef("%s  seq %d at %s  %s %s", head, n.Seq, msText(n.TMS), n.Kind, visible.Line(n.Text))
	}
}

func msText(ms int64) string { return seconds(time.Duration(ms) * time.Millisecond) }

func (p *printer) excerpt(x *Excerpt) {
	if x == nil {
		return
	}
	hidden := ""
	if x.Hidden {
		hidden = ", hidden"
	}
	p.linef("  screen   %dx%d at %s (seq %d), cursor %d,%d%s", x.Rows, x.Cols, msText(x.TMS), x.Seq, x.Cursor[0], x.Cursor[1], hidden)
	last := -1
	for i := range x.Lines {
		l := &x.Lines[i]
		if last >= 0 && l.Row > last+1 && x.Omitted > 0 {
			p.linef("           %s", p.paint(dim, ":"))
		}
		p.row(l)
		last = l.Row
	}
	if x.Omitted > 0 {
		p.linef("           %s", p.paint(dim, sprintf("(%s more)", countOf(x.Omitted, "row"))))
	}
}

// row writes a row and, below it, what is marked and what was wanted there.
func (p *printer) row(l *Line) {
	text, under := p.marked(l)
	arrow := " "
	if under != "" || l.HasWanted {
		arrow = p.paint(red, ">")
	}
	p.linef("    %s %4d %s", arrow, l.Row, p.paint(dim, "|")+text)
	if under != "" {
		p.linef("           %s", p.paint(dim, "|")+p.paint(red, under))
	}
	if l.Wanted != "" || l.HasWanted {
		p.linef("    wanted %s", p.paint(dim, "|")+strings.Repeat(" ", l.WantedCol)+p.paint(green, visible.Line(l.Wanted)))
	}
}

// marked returns the line as it is shown and a line with ^ under what is marked.
func (p *printer) marked(l *Line) (text, under string) {
	var b, u strings.Builder
	col := 0
	for rest := l.Text; rest != ""; {
		cluster, width := vt.FirstCluster(rest)
		if cluster == "" {
			_, n := utf8.DecodeRuneInString(rest)
			cluster = rest[:n]
		}
		rest = rest[len(cluster):]
		shown := visible.Line(cluster)
		room := max(width, 0)
		if shown != cluster {
			room = len(shown)
		}
		if isMarked(l.Marks, col, col+max(width, 1)) {
			b.WriteString(p.paint(marked, shown))
			u.WriteString(strings.Repeat("^", room))
		} else {
			b.WriteString(shown)
			u.WriteString(strings.Repeat(" ", room))
		}
		col += width
	}
	for _, m := range l.Marks {
		if m[1] > col {
			from := max(m[0], col)
			u.WriteString(strings.Repeat(" ", from-col) + strings.Repeat("^", m[1]-from))
			col = m[1]
		}
	}
	return b.String(), strings.TrimRight(u.String(), " ")
}

func isMarked(marks [][2]int, from, to int) bool {
	for _, m := range marks {
		if from < m[1] && to > m[0] {
			return true
		}
	}
	return false
}

func (p *printer) sum(r *Result) {
	c := &r.Counts
	where := sprintf("%s on cassette %s (%s, %s)", visible.Line(r.Scenario), visible.Line(r.Cassette.ID), countOf(r.Cassette.Screens, "screen"), msText(r.Cassette.DurationMS))
	if r.Passed {
		p.linef("%s  %s: %s", p.paint(green, "ok"), where, countOf(c.Passed, "assertion"))
		return
	}
	var all []string
	for _, n := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Unchecked, "could not be checked"}, {c.Passed, "passed"}} {
		if n.n > 0 {
			all = append(all, sprintf("%d %s", n.n, n.what))
		}
	}
	p.linef("%s  %s: %s", p.paint(red, "FAIL"), where, strings.Join(all, ", "))
}
