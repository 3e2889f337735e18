package runview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A Frame says how the picture of a run is to look.
type Frame struct {
	Cols, Rows int       // of the terminal
	Now        time.Time // its location is that of the times shown
	Colour     bool
	Beat       int    // counts on for as long as the picture moves
	Selected   int    // the turn in focus, less than 0 is the newest
	News       string // what there is to say about the connection, "" for nothing
	Keys       string // what the keys do, "" where none are heard
	// Settled is the picture that is left behind: all its room is for the turns, and nothing in it moves.
	Settled bool
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const (
	minFocus = 5  // rows of the turn in focus, its rule included, where there is room for one
	allParts = 14 // rows from which on there is
	fullHead = 10 // rows from which on the head has all its lines
)

// Draw returns at most f.Rows lines of at most f.Cols columns each.
func (f *Frame) Draw(r *Run) []string {
	p := &picture{Frame: f, run: r}
	p.head()
	foot := p.foot()
	room := max(0, f.Rows-len(p.lines)-len(foot))
	at := f.chosen(r)
	switch {
	case len(r.Turns) == 0:
	case f.Settled || f.Rows < allParts:
		p.list(at, room)
	default:
		p.list(at, min(len(r.Turns), room-max(minFocus, room/3)))
		p.focus(&r.Turns[at], f.Rows-len(p.lines)-len(foot))
	}
	if !f.Settled {
		for len(p.lines)+len(foot) < f.Rows {
			p.lines = append(p.lines, "")
		}
	}
	p.lines = append(p.lines, foot...)
	return p.lines[:min(len(p.lines), max(0, f.Rows))]
}

// chosen is the place of the turn in focus.
func (f *Frame) chosen(r *Run) int {
	if f.Settled || f.Selected < 0 || f.Selected >= len(r.Turns) {
		return len(r.Turns) - 1
	}
	return f.Selected
}

// A picture is being drawn.
type picture struct {
	*Frame
	run   *Run
	lines []string
}

func (p *picture) row() *row { return newRow(p.Cols, p.Colour) }

func (p *picture) add(r *row) { p.lines = append(p.lines, r.String()) }

func (p *picture) head() {
	p.title()
	if p.Rows >= fullHead {
		p.add(p.whose())
	}
	if p.Rows >= 3 {
		p.add(p.counts())
	}
	if p.Rows >= fullHead {
		p.add(p.row().put(dim, strings.Repeat("─", max(0, p.Cols))))
	}
}

// title is how the run stands, what it is for, and for how long it has gone on.
func (p *picture) title() {
	sign, s, word := p.state()
	took := ""
	if !p.run.Started.IsZero() {
		took = elapsed(p.run.Took(p.Now))
	}
	r := p.row().put(s, sign).put(plain, " ")
	if p.Cols >= narrow || p.run.Status == "" { // while there is no run, the word is all there is
		r.put(s, word).put(plain, "  ")
	}
	if room := r.left() - len(took) - 1; room > 0 {
		r.column(bold, oneLine(p.run.Intent), room).put(plain, " ").put(plain, took)
	}
	p.add(r)
}

// state is the run's status as a sign, a style and a word.
func (p *picture) state() (sign string, s style, word string) {
	switch p.run.Status {
	case "":
		return p.spin(), dim, "waiting"
	case InProgress:
		return p.spin(), cyan, "in progress"
	}
	return p.run.End()
}

func (p *picture) spin() string {
	if p.Settled {
		return "…"
	}
	return spinner[p.Beat%len(spinner)]
}

// whose says which run of which agent it is, and since when.
func (p *picture) whose() *row {
	r := p.row()
	if p.run.ID == "" {
		return r
	}
	r.put(dim, "  run ").put(plain, p.run.ID)
	r.put(dim, " · agent ").put(plain, p.run.Agent)
	if !p.run.Started.IsZero() {
		r.put(dim, " · since "+p.run.Started.In(p.Now.Location()).Format("15:04:05"))
	}
	if p.run.Recording != "" {
		r.put(dim, " · recording "+p.run.Recording)
	}
	return r
}

// counted are the marks that are counted in the head, and in which words.
var counted = []struct {
	mark Mark
	word string
}{{Passed, "passed"}, {Failed, "failed"}, {TimedOut, "timed out"}, {Rejected, "rejected"}}

// counts says how many turns there are and how they came out; news stands before it.
func (p *picture) counts() *row {
	r := p.row().put(plain, "  ")
	if p.News != "" {
		return r.put(yellow, p.News)
	}
	if p.run.ID == "" {
		return r
	}
	r.put(plain, turns(len(p.run.Turns)))
	for _, c := range counted {
		n := p.run.Marks[c.mark]
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%s %d", signs[c.mark].sign, n)
		if p.Cols >= narrow {
			text += " " + c.word
		}
		r.put(plain, "   "[:p.gap()]).put(signs[c.mark].style, text)
	}
	return r
}

func (p *picture) gap() int {
	if p.Cols < narrow {
		return 2
	}
	return 3
}

func turns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

// list draws so many rows of turns, with that at in them.
func (p *picture) list(at, rows int) {
	if rows <= 0 {
		return
	}
	all := p.run.Turns
	g := gridFor(p.Cols, all[len(all)-1].Index)
	w := windowOf(len(all), at, rows)
	if w.above > 0 {
		p.add(p.row().put(dim, fmt.Sprintf("⋮ %s above", turns(w.above))))
	}
	for i := w.from; i < w.to; i++ {
		p.add(g.listRow(p.row(), &all[i], i == at && !p.Settled))
	}
	if w.below > 0 {
		p.add(p.row().put(dim, fmt.Sprintf("⋮ %s below", turns(w.below))))
	}
}

// foot is the outcome of a run that has ended, and the keys of one that is looked at.
func (p *picture) foot() []string {
	var out []string
	if o := p.run.Outcome; o != nil && o.Summary != "" && p.Rows >= 6 {
		lines, left := wrap(o.Summary, p.Cols-2, max(1, p.Rows/6))
		if left > 0 {
			lines[len(lines)-1] = fit(lines[len(lines)-1]+" "+ellipsis, p.Cols-2)
		}
		for _, l := range lines {
			out = append(out, p.row().put(plain, "  ").put(bold, l).String())
		}
	}
	if p.Keys != "" && !p.Settled && p.Rows >= 8 {
		out = append(out, p.row().put(dim, p.Keys).String())
	}
	return out
}

// focus draws the turn that is looked at in so many rows: a rule with its name, what was asked, what came.
func (p *picture) focus(t *Turn, rows int) {
	if rows < 2 {
		return
	}
	s := signs[t.Mark]
	r := p.row().put(dim, "── ").put(bold, fmt.Sprintf("%d %s", t.Index, t.verb())).put(plain, " ")
	if t.Label != "" {
		r.put(s.style, s.sign+" "+t.Label).put(plain, " ")
	}
	p.add(r.put(dim, strings.Repeat("─", max(0, r.left()))))
	rows--
	asked, came := t.asked(), t.came()
	width := p.nameWidth(slices.Concat(asked, came))
	room := rows
	if len(came) > 0 { // at least half is for what came of it, if it has that much to say
		room = max(rows-p.height(came, width, rows), rows/2)
	}
	rows -= p.fields(asked, width, room, plain)
	style := plain
	if t.Mark == Rejected {
		style = refused
	}
	p.fields(came, width, rows, style)
}

// nameWidth is how wide the names of fields stand.
func (p *picture) nameWidth(fields []Field) int {
	widest := 0
	for _, f := range fields {
		widest = max(widest, vt.StringWidth(visible.Line(f.Name)))
	}
	return min(widest, max(4, p.Cols/5))
}

// height is how many rows fields take, at most most.
func (p *picture) height(fields []Field, width, most int) int {
	n := 0
	for _, f := range fields {
		lines, _ := wrap(f.Text, p.Cols-width-4, most)
		n += max(1, len(lines))
		if n >= most {
			return most
		}
	}
	return n
}

// fields draws names and texts in at most rows rows and returns how many they took. Each has its row before any has two.
func (p *picture) fields(fields []Field, width, rows int, s style) (used int) {
	for i, f := range fields {
		if used == rows {
			return used
		}
		behind := len(fields) - i - 1
		if used+1 == rows && behind > 0 {
			p.add(p.row().put(dim, fmt.Sprintf("  %s %d more", ellipsis, behind+1)))
			return rows
		}
		used += p.field(f, width, max(1, rows-used-behind), s)
	}
	return used
}

// field draws one field in at most rows rows.
func (p *picture) field(f Field, width, rows int, s style) int {
	lines, left := wrap(f.Text, p.Cols-width-4, rows)
	if len(lines) == 0 {
		lines = []string{""}
	}
	more := ""
	switch {
	case f.Len > len(f.Text):
		more = fmt.Sprintf(" %s %d bytes", ellipsis, f.Len)
	case left > 0:
		more = fmt.Sprintf(" %s %d more", ellipsis, left)
	}
	for i, line := range lines {
		name := ""
		if i == 0 {
			name = f.Name
		}
		r := p.row().put(plain, "  ").column(dim, name, width).put(plain, "  ")
		if i == len(lines)-1 && more != "" {
			line = fit(line, r.left()-vt.StringWidth(more))
			p.add(r.put(s, line).put(dim, more))
			continue
		}
		p.add(r.put(s, line))
	}
	return len(lines)
}

// A grid is where the columns of a list of turns stand.
type grid struct {
	index, label, tool, gap int
}

const (
	narrow    = 60 // columns: below, every one counts
	labelWide = 8  // "rejected"
)

// gridFor is the grid of a list in so many columns whose highest index is last.
func gridFor(cols, last int) grid {
	g := grid{index: max(2, len(strconv.Itoa(last))), label: labelWide, tool: min(20, cols/5), gap: 2}
	if cols < narrow {
		g.tool, g.gap = max(4, cols/4), 1
	}
	return g
}

// listRow is one turn on one line: its sign, number, how it came out, its tool, what was asked and what came.
func (g grid) listRow(r *row, t *Turn, chosen bool) *row {
	s := signs[t.Mark]
	tool, rest := plain, dim
	if chosen {
		tool, rest = bold, plain
	}
	if t.Mark == Rejected {
		tool, rest = refused, refused
	}
	gap := "  "[:g.gap]
	r.put(s.style, s.sign).put(plain, " ").put(dim, fmt.Sprintf("%*d", g.index, t.Index)).put(plain, gap)
	r.column(s.style, t.Label, g.label).put(plain, gap)
	return r.column(tool, t.verb(), g.tool).put(plain, gap).put(rest, t.gist())
}

// A window says which turns a list shows, and how many stand above and below it. Where some do, a row says so.
type window struct {
	from, to     int
	above, below int
}

// windowOf is the window of so many rows over n turns that holds the turn at.
func windowOf(n, at, rows int) window {
	if n <= rows {
		return window{to: n}
	}
	from := max(0, min(at-rows/2, n-rows))
	w := window{from: from, to: from + rows}
	if rows < 4 { // no room for a word about the others
		return w
	}
	if w.from > 0 {
		w.from++
		w.above = w.from
	}
	if w.to < n {
		w.to--
		w.below = n - w.to
	}
	return w
}
