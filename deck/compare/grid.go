package compare

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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
