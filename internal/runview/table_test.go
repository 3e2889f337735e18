package runview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// TestTable: what is listed of runs at several widths: ids stay such that they name their run, lines are cut.
func TestTable(t *testing.T) {
	rows := []ListRow{
		{Run: "01a2042e-55a5-71e9-9c0e-6eac6e3b91bc", Agent: "name:a-long-name-of-an-agent", Intent: "slowly do 日本語 things\x1b[31m\nand more", Status: InProgress, Turns: 12, Started: start},
		{Run: "01a2042e-55b0-7fe2-b743-fdfd094bf854", Agent: "coder", Intent: "fix it", Status: Completed, Turns: 1990, Started: start.Add(-time.Hour), Ended: start},
		{Run: "nightly", Agent: "coder", Intent: "the nightly build", Status: Incomplete, Started: start.AddDate(-1, 0, 0), Ended: start.AddDate(-1, 0, 0).Add(250 * time.Millisecond)},
	}
	var out strings.Builder
	for _, cols := range []int{-1, 120, 80, 60, 40, 20} {
		table := List(rows, start.Add(75*time.Second), cols)
		fmt.Fprintf(&out, "== %d\n%s", cols, table)
		for line := range strings.Lines(table) {
			if w := vt.StringWidth(strings.TrimSuffix(line, "\n")); cols >= 0 && w > cols {
				t.Errorf("%d columns of %d: %s", w, cols, line)
			}
		}
	}
	golden(t, "table", out.String())
	if n := distinct(rows); n != 12 {
		t.Errorf("%d bytes tell the ids apart, want 12", n)
	}
}
