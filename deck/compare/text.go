package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// table is a row a recording.
func (p *page) table(c *Comparison) {
	g := &grid{head: []string{">", "recording", "model", ">turns", ">after", ">tools", ">files", "exit"}}
	checks := slices.ContainsFunc(c.Rows, func(r *Row) bool { return r.Check != nil })
	if checks {
		g.head = append(g.head, "check")
	}
	g.head = append(g.head, useHead...)
	for i, r := range c.Rows {
		row := cellsOf(fmt.Sprint(i+1), r.Name(), strings.Join(r.Total.Models, ", "), fmt.Sprint(r.Total.Turns), fmt.Sprint(r.After.Turns),
			fmt.Sprint(r.Total.Tools), fmt.Sprint(r.Total.Files))
		row = append(row, exitCell(r.Exit))
		if checks {
			row = append(row, checkCell(r.Check))
		}
		g.add(append(row, cellsOf(useOf(&r.Total)...)...)...)
	}
	p.grid(g)
}

func exitCell(e *recording.Exit) cell {
	switch {
	case e == nil:
		return cell{"unknown", red}
	case e.Signal != "":
		return cell{e.Signal, red}
	case e.Code != 0:
		return cell{fmt.Sprint(e.Code), red}
	}
	return cell{text: "0"}
}

func checkCell(c *Check) cell {
	switch {
	case c == nil:
		return cell{}
	case c.Passed():
		return cell{"passed", green}
	case c.TimedOut:
		return cell{"timed out", red}
	case c.Why != "":
		return cell{"not run", red}
	}
	return cell{fmt.Sprintf("exit %d", c.Exit), red}
}

// together lists places of which the same is to be said, in the order of their first.
type together struct {
	of    map[string][]int
	order []string
}

func (t *together) add(place int, lines []string) {
	key := strings.Join(lines, "\n")
	if t.of == nil {
		t.of = make(map[string][]int)
	}
	if t.of[key] == nil {
		t.order = append(t.order, key)
	}
	t.of[key] = append(t.of[key], place)
}

// section writes what is to be said of each row; nothing where that is nothing of any.
func (p *page) section(title string, c *Comparison, say func(r *Row) []string) {
	var t together
	for i, r := range c.Rows {
		if lines := say(r); len(lines) > 0 {
			t.add(i+1, lines)
		}
	}
	if len(t.order) == 0 {
		return
	}
	p.heading(title)
	for _, key := range t.order {
		lines := strings.Split(key, "\n")
		p.item(numbers(t.of[key])+"  "+lines[0], lines[1:]...)
	}
}

func (p *page) leaving(c *Comparison) {
	p.section("where they leave 1", c, func(r *Row) []string {
		d := r.Leaves
		if d == nil {
			return nil
		}
		return []string{
			fmt.Sprintf("at turn %d of %s (record %s of 1): %s", d.Turn, d.Conversation, seqOf(d.Seq), differsIn[d.What]),
			"1:       " + orNothing(d.First), "instead: " + orNothing(d.Other),
		}
	})
}

// differsIn says for people what two turns differ in.
var differsIn = map[What]string{
	ByModel:  "another model",
	ByPrompt: "something else was asked",
	ByParams: "asked with other parameters",
	ByError:  "one was not answered",
	ByTools:  "the answer asks for other tools, or with other arguments",
	ByAnswer: "the answer says something else",
	ByEnd:    "only one of them has this turn",
}

func seqOf(seq *uint64) string {
	if seq == nil {
		return "none"
	}
	return fmt.Sprint(*seq)
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return strings.ReplaceAll(s, "\n", " ")
}

func (p *page) tools(c *Comparison) {
	p.section("tools, and calls with arguments that 1 has not", c, func(r *Row) []string {
		if len(r.Tools) == 0 {
			return nil
		}
		var names, below []string
		for _, t := range r.Tools {
			names = append(names, fmt.Sprintf("%s %d", t.Name, t.Calls))
			for _, call := range t.Other {
				below = append(below, fmt.Sprintf("turn %d: %s %s", call.Turn, t.Name, call.Arguments))
			}
			if t.More > 0 {
				below = append(below, fmt.Sprintf("%s %d times more", t.Name, t.More))
			}
		}
		return append([]string{strings.Join(names, ", ")}, below...)
	})
}

// maxFiles is how many files of one recording are named.
const maxFiles = 10

func (p *page) files(c *Comparison) {
	p.section("files that they left otherwise than 1", c, func(r *Row) (lines []string) {
		for _, f := range r.Files[:min(len(r.Files), maxFiles)] {
			lines = append(lines, f.Path+": "+f.words())
		}
		if more := len(r.Files) - maxFiles; more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
		return lines
	})
}

// words say what became of a file.
func (f *File) words() string {
	was, is := strings.Fields(f.First), strings.Fields(f.Other)
	switch {
	case len(was) == 0:
		return "1 has none"
	case len(is) == 0:
		return "is not there"
	case was[len(was)-1] == is[len(is)-1]:
		return "mode " + is[0] + ", of 1 " + was[0]
	}
	return "other content"
}

func (p *page) checks(c *Comparison) {
	p.section("where the check did not pass", c, func(r *Row) []string {
		k := r.Check
		if k == nil || k.Passed() {
			return nil
		}
		lines := []string{checkCell(k).text + " of " + k.Command}
		if k.Why != "" {
			lines[0] += ": " + k.Why
		}
		const most = 5 // lines of its output
		said := strings.Split(strings.TrimSpace(k.Output), "\n")
		return append(lines, slices.DeleteFunc(said[max(0, len(said)-most):], func(s string) bool { return s == "" })...)
	})
}

func (p *page) groups(c *Comparison) {
	if len(c.Groups) == 0 {
		return
	}
	p.heading("groups: runs of one fork, and whether they differ from the first group by more than chance (95%)")
	g := &grid{head: []string{"", "recordings", ">runs", ">mean", ">spread", "interval", "difference", ""}}
	for i := range c.Groups[0].Numbers {
		for _, group := range c.Groups {
			n := group.Numbers[i]
			if n.Sample == nil {
				g.add(cellsOf(n.Name, numbers(group.Members), fmt.Sprint(len(group.Members)), "unknown", "", "", "", "")...)
				continue
			}
			row := cellsOf(n.Name, numbers(group.Members), fmt.Sprint(n.Sample.N), n.shown(n.Sample.Mean), n.shown(n.Sample.Spread))
			interval, apart := "", ""
			if n.Sample.Low != nil {
				interval = n.shown(*n.Sample.Low) + " to " + n.shown(*n.Sample.High)
			}
			if n.Apart != nil {
				apart = n.shown(n.Apart.Low) + " to " + n.shown(n.Apart.High)
			}
			g.add(append(row, cell{text: interval}, cell{text: apart}, n.Verdict.cell())...)
		}
	}
	p.grid(g)
}

// shown is a value of the number for people.
func (n *Number) shown(v float64) string {
	switch n.Name {
	case passed:
		return fmt.Sprintf("%.0f%%", 100*v)
	case "cost":
		if v < 0 {
			return "-" + recording.Dollars(-v)
		}
		return recording.Dollars(v)
	case lasted:
		return round(v) + "s"
	}
	return round(v)
}

func (v Verdict) cell() cell {
	switch v {
	case Regression:
		return cell{string(v), red}
	case Improvement:
		return cell{string(v), green}
	}
	return cell{string(v), plain}
}

// A Form is how a comparison is written for people.
type Form struct {
	Markdown bool
	Colour   bool // of text
}

// A page is being written. The first error stays.
type page struct {
	Form
	w   io.Writer
	err error
}

func (p *page) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = visible.Fprintf(p.w, format, args...)
	}
}

// heading begins a section.
func (p *page) heading(text string) {
	if p.Markdown {
		p.print("\n### %s\n\n", text)
		return
	}
	p.print("\n%s\n", text)
}

// item is a line of a section, with more below it.
func (p *page) item(text string, below ...string) {
	first, more := "  ", "      "
	if p.Markdown {
		first, more = "- ", "  - "
	}
	p.print("%s%s\n", first, p.shown(text))
	for _, line := range below {
		p.print("%s%s\n", more, p.shown(line))
	}
}

// shown is a text of a recording within a line of the page.
func (p *page) shown(s string) string {
	if p.Markdown {
		return visible.Markdown(s)
	}
	return visible.Line(s)
}

// Styles of a cell.
const (
	plain = ""
	red   = "\x1b[31m"
	green = "\x1b[32m"
	reset = "\x1b[0m"
)

// A cell stands in a grid. A number is aligned at its right.
type cell struct {
	text, style string
}

// A grid is rows in aligned columns; of head a name that begins with > is that of numbers, which are aligned at their right.
type grid struct {
	head []string
	rows [][]cell
}

func (g *grid) add(cells ...cell) { g.rows = append(g.rows, cells) }

func cellsOf(texts ...string) []cell {
	out := make([]cell, len(texts))
	for i, t := range texts {
		out[i].text = t
	}
	return out
}

func (p *page) grid(g *grid) {
	head := make([]cell, len(g.head))
	widths := make([]int, len(g.head))
	for i, name := range g.head {
		head[i].text = strings.TrimPrefix(name, ">")
	}
	rows := append([][]cell{head}, g.rows...)
	for _, row := range rows {
		for i := range row {
			row[i].text = p.shown(row[i].text)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	for n, row := range rows {
		p.row(g, row, widths)
		if n == 0 && p.Markdown {
			p.print("|%s\n", strings.Join(g.rules(), "|")+"|")
		}
	}
}

// rules is what stands below the head of a table of Markdown.
func (g *grid) rules() []string {
	out := make([]string, len(g.head))
	for i, name := range g.head {
		out[i] = "---"
		if strings.HasPrefix(name, ">") {
			out[i] = "--:"
		}
	}
	return out
}

func (p *page) row(g *grid, row []cell, widths []int) {
	var line strings.Builder
	for i, c := range row {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
		if p.Colour && c.style != plain {
			c.text = c.style + c.text + reset
		}
		switch {
		case p.Markdown:
			fmt.Fprintf(&line, "| %s ", c.text)
		case strings.HasPrefix(g.head[i], ">"):
			line.WriteString(pad + c.text + "  ")
		default:
			line.WriteString(c.text + pad + "  ")
		}
	}
	if p.Markdown {
		line.WriteString("|")
	}
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(line.String(), " ")) // the cells are visible already
	}
}

// useHead and useOf are the columns of tokens, cost and time.
var useHead = []string{">tokens in", ">cached", ">out", ">cost", ">time"}

func useOf(t *recording.Totals) []string {
	in, cached, out := "unknown", "unknown", "unknown"
	if t.Uncounted == 0 || t.InputTokens > 0 {
		in, cached, out = fmt.Sprint(t.InputTokens), fmt.Sprint(t.CachedTokens), fmt.Sprint(t.OutputTokens)
	}
	return []string{in, cached, out, t.Cost(), seconds(t.DurationMS)}
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000) }

// WriteUse writes tokens, cost and time of some recordings, a line each, and what of that is not known.
func WriteUse(w io.Writer, names []string, totals []*recording.Totals) error {
	p := &page{w: w}
	g := &grid{head: append([]string{""}, useHead...)}
	for i, t := range totals {
		g.add(cellsOf(append([]string{names[i]}, useOf(t)...)...)...)
	}
	p.grid(g)
	for _, note := range unknown(totals) {
		p.print("%s\n", note)
	}
	return p.err
}

// unknown says of what neither tokens nor cost are known.
func unknown(totals []*recording.Totals) (notes []string) {
	var models []string
	seen := make(map[string]bool)
	silent := 0
	for _, t := range totals {
		silent += t.Uncounted
		for _, m := range t.Unpriced {
			if !seen[m] {
				seen[m] = true
				models = append(models, m)
			}
		}
	}
	if len(models) > 0 {
		notes = append(notes, fmt.Sprintf("no price is known for %s: prices in %s adds it", strings.Join(models, ", "), recording.ConfigName))
	}
	if silent > 0 {
		notes = append(notes, fmt.Sprintf("%d answers do not say how many tokens they took", silent))
	}
	return notes
}
