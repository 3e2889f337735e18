package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// ResultVersion is the version of a Result's JSON.
const ResultVersion = 1

// A Status is what came of an assertion.
type Status string

// The statuses. What could not be looked at is not passed.
const (
	Passed    Status = "passed"
	Failed    Status = "failed"
	Unchecked Status = "unchecked" // the cassette does not hold what would tell
)

// A Result is what came of a scenario.
type Result struct {
	Version    int       `json:"version"`
	Passed     bool      `json:"passed"` // all of them
	Scenario   string    `json:"scenario"`
	Cassette   Checked   `json:"cassette"`
	Counts     Counts    `json:"counts"`
	Assertions []Outcome `json:"assertions"`
}

// Checked is the cassette that was looked at.
type Checked struct {
	Path       string `json:"path"`
	ID         string `json:"id"`
	SHA256     string `json:"sha256"`
	DurationMS int64  `json:"duration_ms"`
	Screens    int    `json:"screens"` // with the blank one at the start
	Finished   bool   `json:"finished"`
}

// Counts are how many assertions came out how.
type Counts struct {
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Unchecked int `json:"unchecked"`
}

// An Outcome is what came of one assertion. Wanted and Came are for people.
type Outcome struct {
	Name     string    `json:"name,omitempty"`
	Family   string    `json:"family"`
	Line     int       `json:"line"` // in the scenario, from 1
	Column   int       `json:"column"`
	Status   Status    `json:"status"`
	Source   string    `json:"source"` // as it is written
	Wanted   string    `json:"wanted,omitempty"`
	Came     string    `json:"came,omitempty"`
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence is what a failure is understood by.
type Evidence struct {
	Frames  []FrameTime `json:"frames,omitempty"`
	Screen  *Excerpt    `json:"screen,omitempty"`
	Context []Nearby    `json:"context,omitempty"` // service events, inputs, resizes and signals before it and while it stood, the latest last
}

// A FrameTime is when a screen came to stand: after the event Seq. Seq 0 is the blank screen at the start.
type FrameTime struct {
	Is  string `json:"is"` // before, at, after
	Seq int64  `json:"seq"`
	TMS int64  `json:"t_ms"`
}

// A Nearby is an event that came shortly before.
type Nearby struct {
	Kind string `json:"kind"` // input, resize, signal, service
	Seq  int64  `json:"seq"`
	TMS  int64  `json:"t_ms"`
	Text string `json:"text"`
}

// An Excerpt is a part of a screen. Rows and columns count from 0.
type Excerpt struct {
	Seq     int64  `json:"seq"`
	TMS     int64  `json:"t_ms"`
	Rows    int    `json:"rows"`
	Cols    int    `json:"cols"`
	Cursor  [2]int `json:"cursor"` // row, column
	Hidden  bool   `json:"cursor_hidden,omitempty"`
	Lines   []Line `json:"lines"`
	Omitted int    `json:"omitted,omitempty"` // rows that are not shown and not blank
}

// A Line is a row of an Excerpt, or several that wrap.
type Line struct {
	Row       int      `json:"row"`
	Col       int      `json:"col,omitempty"` // where the text begins
	Text      string   `json:"text"`
	Marks     [][2]int `json:"marks,omitempty"` // columns of Text from…to that are not as wanted or, of what must not be, that are
	Wanted    string   `json:"wanted,omitempty"`
	WantedCol int      `json:"wanted_col,omitempty"`
	HasWanted bool     `json:"-"`
}

// WriteJSON writes r as one object and a newline.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func (r *Result) add(o Outcome) {
	switch o.Status {
	case Passed:
		r.Counts.Passed++
	case Failed:
		r.Counts.Failed++
	default:
		r.Counts.Unchecked++
	}
	r.Assertions = append(r.Assertions, o)
	r.Passed = r.Counts.Passed == len(r.Assertions)
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// TextOptions say how a Result is written for people. Nil and zero work.
type TextOptions struct {
	Color   bool // with SGR sequences
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
	under, col := "", 0
	for _, m := range l.Marks {
		under += strings.Repeat(" ", max(m[0]-col, 0)) + strings.Repeat("^", max(m[1]-max(m[0], col), 0))
		col = max(col, m[1])
	}
	arrow := " "
	if under != "" || l.HasWanted {
		arrow = p.paint(red, ">")
	}
	p.linef("    %s %4d %s", arrow, l.Row, p.paint(dim, "|")+visible.Line(l.Text))
	if under != "" {
		p.linef("           %s", p.paint(dim, "|")+p.paint(red, under))
	}
	if l.Wanted != "" || l.HasWanted {
		p.linef("    wanted %s", p.paint(dim, "|")+strings.Repeat(" ", l.WantedCol)+p.paint(green, visible.Line(l.Wanted)))
	}
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

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes r as a JUnit test suite: one case an assertion. What could not be checked is an error there.
func (r *Result) WriteJUnit(w io.Writer) error {
	s := junitSuite{Name: r.Scenario, Tests: len(r.Assertions), Failures: r.Counts.Failed, Errors: r.Counts.Unchecked}
	for i := range r.Assertions {
		o := &r.Assertions[i]
		c := junitCase{Name: o.Name, Class: sprintf("%s:%d", r.Scenario, o.Line)}
		if c.Name == "" {
			c.Name, _, _ = strings.Cut(o.Source, "\n")
		}
		if m := (&junitMessage{o.Came, o.Text(r.Scenario)}); o.Status == Failed {
			c.Failure = m
		} else if o.Status == Unchecked {
			c.Error = m
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
