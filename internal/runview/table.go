package runview

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A ListRow is a run in a list of runs.
type ListRow struct {
	Run, Agent, Intent string
	Status             string
	Turns              int
	Started, Ended     time.Time // Ended is zero while it goes on
}

// List is a list of runs as a table, a line each, cut to cols columns; cols less than 0 cuts nothing. Times are shown as they
// are, in their own zones.
func List(rows []ListRow, now time.Time, colour bool, cols int) string {
	if cols < 0 {
		cols = unlimited
	}
	cells := make([][]string, 0, len(rows)+1)
	cells = append(cells, []string{"WHEN", "RUN", "AGENT", "STATUS", "TURNS", "TOOK", "INTENT"})
	for i := range rows {
		cells = append(cells, rows[i].cells(now))
	}
	widths := columnWidths(cells, cols)
	var b strings.Builder
	for i, c := range cells {
		r := newRow(cols, colour)
		for at, text := range c[:len(c)-1] {
			s := plain
			switch {
			case i == 0:
				s = dim
			case at == 3:
				s = statusStyle(rows[i-1].Status)
			}
			if at == 4 || at == 5 { // numbers stand to the right
				text = strings.Repeat(" ", max(0, widths[at]-vt.StringWidth(text))) + text
			}
			r.column(s, text, widths[at]).put(plain, "  ")
		}
		if i == 0 {
			r.put(dim, c[len(c)-1])
		} else {
			r.put(plain, c[len(c)-1])
		}
		b.WriteString(r.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// cells are the texts of a row.
func (l *ListRow) cells(now time.Time) []string {
	took := "-"
	switch {
	case !l.Ended.IsZero():
		took = Duration(max(0, l.Ended.Sub(l.Started)))
	case l.Status == InProgress:
		took = elapsed(max(0, now.Sub(l.Started)))
	}
	return []string{
		when(l.Started, now), visible.Line(l.Run), visible.Line(l.Agent), strings.ReplaceAll(visible.Line(l.Status), "_", " "),
		strconv.Itoa(l.Turns), took, oneLine(visible.Line(l.Intent)),
	}
}

// when is a moment of today as a time of day, any other with its date.
func when(t, now time.Time) string {
	y, m, d := t.Date()
	if ny, nm, nd := now.Date(); y == ny && m == nm && d == nd {
		return t.Format("15:04:05")
	}
	if y == now.Year() {
		return t.Format("01-02 15:04")
	}
	return t.Format("2006-01-02")
}

// columnWidths is how wide each column stands. Where there is little room, ids give way: what is left is for the intent.
func columnWidths(cells [][]string, cols int) []int {
	widths := make([]int, len(cells[0]))
	for _, c := range cells {
		for i, text := range c {
			widths[i] = max(widths[i], vt.StringWidth(text))
		}
	}
	if cols == unlimited {
		return widths
	}
	total := 0
	for _, w := range widths[:len(widths)-1] {
		total += w + 2
	}
	const leastIntent, leastID = 16, 8
	for _, at := range []int{2, 1} { // the agent's first: a run is named by the beginning of its id
		if over := total + leastIntent - cols; over > 0 {
			cut := min(over, max(0, widths[at]-leastID))
			widths[at] -= cut
			total -= cut
		}
	}
	return widths
}

func statusStyle(status string) style {
	switch status {
	case InProgress:
		return cyan
	case Completed:
		return green
	}
	return yellow
}

// Summary is one line about how a run ended: "completed: success, 12 turns (1 rejected), took 42s".
func (r *Run) Summary(now time.Time) string {
	text := "in progress"
	if r.Status != InProgress {
		_, _, words := r.End()
		text = words
		if r.Status == Completed && words != Completed {
			text = Completed + ": " + words
		}
	}
	text += ", " + turns(len(r.Turns))
	if _, counts, ok := strings.Cut(r.CountsText(), ": "); ok {
		text += " (" + counts + ")"
	}
	return text + fmt.Sprintf(", took %s", Duration(r.Took(now)))
}
