package runview

import (
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

// The columns of a list of runs.
const (
	colWhen = iota
	colRun
	colAgent
	colStatus
	colTurns
	colTook
	colIntent
)

// List is a list of runs as a table, a line each. It goes into cols columns: ids are cut to what tells those of the list apart, and
// where that is not enough columns are left out; cols less than 0 has everything whole. Times are shown as they are, in their own
// zones.
func List(rows []ListRow, now time.Time, colour bool, cols int) string {
	cells := make([][]string, 0, len(rows)+1)
	cells = append(cells, []string{"WHEN", "RUN", "AGENT", "STATUS", "TURNS", "TOOK", "INTENT"})
	idLen := 0
	if cols >= 0 {
		idLen = distinct(rows)
	} else {
		cols = unlimited
	}
	for i := range rows {
		cells = append(cells, rows[i].cells(now, idLen))
	}
	widths := columnWidths(cells, cols)
	var b strings.Builder
	for i, c := range cells {
		r := newRow(cols, colour)
		for at, text := range c {
			if widths[at] == 0 {
				continue
			}
			s := plain
			switch {
			case i == 0:
				s = dim
			case at == colStatus:
				s = statusStyle(rows[i-1].Status)
			}
			switch at {
			case colIntent:
				r.put(s, text)
				continue
			case colTurns, colTook: // numbers stand to the right
				text = strings.Repeat(" ", max(0, widths[at]-vt.StringWidth(text))) + text
			}
			r.column(s, text, widths[at]).put(plain, "  ")
		}
		b.WriteString(r.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// distinct is how many bytes of their ids tell the runs of a list apart, at least 8.
func distinct(rows []ListRow) int {
	n, longest := 8, 0
	for i := range rows {
		longest = max(longest, len(rows[i].Run))
	}
	for ; n < longest; n++ {
		seen := make(map[string]bool, len(rows))
		for i := range rows {
			seen[clip(rows[i].Run, n)] = true
		}
		if len(seen) == len(rows) {
			break
		}
	}
	return n
}

// cells are the texts of a row; of the id idLen bytes, 0 for all.
func (l *ListRow) cells(now time.Time, idLen int) []string {
	id := l.Run
	if idLen > 0 {
		id = clip(id, idLen)
	}
	took := "-"
	switch {
	case !l.Ended.IsZero():
		took = Duration(max(0, l.Ended.Sub(l.Started)))
	case l.Status == InProgress:
		took = elapsed(max(0, now.Sub(l.Started)))
	}
	return []string{
		when(l.Started, now), visible.Line(id), visible.Line(l.Agent), strings.ReplaceAll(visible.Line(l.Status), "_", " "),
		strconv.Itoa(l.Turns), took, visible.Line(oneLine(l.Intent)),
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

// columnWidths is how wide each column stands, 0 for one that is left out: what is left is for the intent.
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
	const leastIntent, leastAgent = 16, 8
	over := leastIntent - cols
	for _, w := range widths[:colIntent] {
		over += w + 2
	}
	cut := max(0, min(over, widths[colAgent]-leastAgent))
	widths[colAgent] -= cut
	over -= cut
	for _, at := range []int{colTook, colWhen, colAgent, colTurns} {
		if over > 0 {
			over -= widths[at] + 2
			widths[at] = 0
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
