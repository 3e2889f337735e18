package runview

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// A ListRow is a run in a list of runs.
type ListRow struct {
	Run, Agent, Intent string
	Status             string
	Turns              int
	Started, Ended     time.Time // Ended is zero while it goes on
}

// List is a list of runs as a table, a line each of at most cols columns, where ids are cut to what tells those of the list apart; cols
// less than 0 has everything whole. Times are shown as they are, in their own zones.
func List(rows []ListRow, now time.Time, cols int) string {
	idLen := 0
	if cols >= 0 {
		idLen = distinct(rows)
	}
	var table, out strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "WHEN\tRUN\tAGENT\tSTATUS\tTURNS\t%6s\tINTENT\n", "TOOK") // numbers stand to the right
	for i := range rows {
		rows[i].write(w, now, idLen)
	}
	w.Flush() // into memory
	for line := range strings.Lines(table.String()) {
		if line = strings.TrimSuffix(line, "\n"); cols >= 0 {
			line = fit(line, cols)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
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

// shortAgent is in how many columns an agent is shown where lines are cut.
const shortAgent = 12

// write writes the cells of a row; of the id idLen bytes, 0 for all.
func (l *ListRow) write(w *tabwriter.Writer, now time.Time, idLen int) {
	id, agent := l.Run, visible.Line(l.Agent)
	if idLen > 0 {
		id, agent = clip(id, idLen), fit(agent, shortAgent)
	}
	took := "-"
	switch {
	case !l.Ended.IsZero():
		took = Duration(max(0, l.Ended.Sub(l.Started)))
	case l.Status == InProgress:
		took = elapsed(max(0, now.Sub(l.Started)))
	}
	status := strings.ReplaceAll(visible.Line(l.Status), "_", " ")
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%5d\t%6s\t%s\n", when(l.Started, now), visible.Line(id), agent, status, l.Turns, took,
		visible.Line(oneLine(l.Intent)))
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
