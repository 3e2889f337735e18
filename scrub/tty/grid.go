package tty

import (
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A grid is what stands in the columns of a row, as far as the layout of a screen goes.
type grid struct {
	gen   uint64 // of the row
	ch    []byte // a character of ASCII, or one of those below
	turns []bool // another background begins
	end   int    // behind the last column with text
}

const (
	blank  = ' '
	border = 1 // a vertical line, or a part of a scroll bar
	glyph  = 2 // of one column
	wide   = 3 // of two, or the second of them
)

func (r *screenRows) grid(y int) *grid {
	rows, _ := r.screen.Size()
	if len(r.grids) < rows {
		r.grids = append(r.grids, make([]grid, rows-len(r.grids))...)
	}
	g := &r.grids[y]
	if gen := r.screen.Changed(y); g.gen != gen {
		r.cells = r.screen.AppendCells(r.cells[:0], y)
		g.fill(r.cells)
		g.gen = gen
	}
	return g
}

func (g *grid) fill(cells []vt.Cell) {
	g.ch, g.turns, g.end = g.ch[:0], g.turns[:0], 0
	before := vt.Style{}
	for x, c := range cells {
		ch := classOf(&c)
		if ch != blank {
			g.end = x + 1
		}
		g.ch = append(g.ch, ch)
		g.turns = append(g.turns, x > 0 && (c.Style.BG != before.BG || (c.Style.Attr^before.Attr)&vt.Reverse != 0))
		before = c.Style
	}
}

func classOf(c *vt.Cell) byte {
	switch {
	case c.Width != 1:
		return wide
	case c.Text == "":
		return blank
	case len(c.Text) == 1:
		return c.Text[0]
	}
	if first, _ := utf8.DecodeRuneInString(c.Text); isBorder(first) {
		return border
	}
	return glyph
}

// isBorder tells what stands at the edges of boxes and in scroll bars, but for '|'.
func isBorder(r rune) bool {
	return r >= '│' && r <= '▟' && strings.ContainsRune("│┃║╎╏┆┇┊┋├┤┝┥┠┨┣┫╞╡╟╢╠╣┼╿╽▏▕▌▐▎▍▊▋▉█▓▒░", r) ||
		strings.ContainsRune("▮▯■□▲▼△▽◆◼⏐⎪↑↓", r)
}

// borders is the first byte of what isBorder tells.
const borders = 0xe2

// trim returns the columns from l to before r without blanks at their ends.
func (g *grid) trim(l, r int) (from, to int) {
	for to = max(min(r, g.end), l); to > l && g.ch[to-1] == blank; to-- {
	}
	for from = l; from < to && g.ch[from] == blank; from++ {
	}
	return from, to
}

// word returns the end of what stands at x without a blank, and before r.
func (g *grid) word(x, r int) int {
	for x < r && g.ch[x] != blank {
		x++
	}
	return x
}

// number returns the end of the number that stands at x, with a blank or a sign behind it: that of a line.
func (g *grid) number(x, r int) (end int, ok bool) {
	for end = x; end < r && g.ch[end] >= '0' && g.ch[end] <= '9'; end++ {
	}
	return end, end > x && end-x <= maxNumber && (end == r || strings.IndexByte(" :|)-", g.ch[end]) >= 0)
}

// maxNumber is how many digits numbers of lines have.
const maxNumber = 8
