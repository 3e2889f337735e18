package runview

import (
	"fmt"
	"strconv"
)

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

// Line is a turn as one line of text for a place that is no terminal. Nothing of it is cut but what is very long.
func (t *Turn) Line(colour bool) string {
	g := grid{index: 4, label: labelWide, tool: 16, gap: 2}
	return g.listRow(newRow(unlimited, colour), t, false).String()
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
