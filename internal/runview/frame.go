package runview

import (
	"fmt"
	"strings"
	"time"
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

// End is how a run ended, as a sign, how it is drawn, and in words.
func (r *Run) End() (sign string, s style, words string) {
	if r.Status != Completed {
		return "!", broken, strings.ReplaceAll(r.Status, "_", " ")
	}
	if r.Outcome == nil {
		return "✓", green, Completed
	}
	words = strings.ReplaceAll(r.Outcome.Status, "_", " ")
	switch r.Outcome.Status {
	case "success", "done":
		return "✓", green, words
	case "failure":
		return "✗", red, words
	}
	return "!", yellow, words
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
