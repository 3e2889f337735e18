package tty

import (
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// What is longer than a row goes on in the next one. A terminal says so where it wrapped the row itself; most programs wrap for
// themselves, and put things around the text: an indent, numbers of lines, frames, a scroll bar, the pane beside. So two rows, one
// below the other, are compared: what stands at their edges in both of them, or is blank, is no text. Between it lie panes; where the
// text of a pane reaches its right edge in one row it may go on where the text of the next one begins.

// A seam is where the text of a row may go on in the next one.
type seam struct {
	left, right int // columns of the pane: from left to before right
	end         int // of the text of the row
	start       int // of the text of the next one
	kind        joint
	gap         bool // a blank stands between
}

// A joint says how sure it is that text goes on.
type joint uint8

const (
	apart joint = iota
	soft        // nothing says so but what they are together
	hard        // the row is full
	sure        // the terminal wrapped it
)

const (
	maxPadding = 2  // columns between a full row and its edge at most
	longWord   = 12 // columns from which a word is one that may be cut
	longPiece  = 16 // and from which a row of words of one length is one that was
	maxGap     = 64 // bytes of sequences between two neighbours that were written together
)

// seams are those between a row and the next one.
type seams struct {
	above, below uint64 // generations of the rows
	known        bool
	list         []seam
}

func (r *screenRows) seams(y int) []seam {
	rows, _ := r.screen.Size()
	if y < 0 || y+1 >= rows || !r.mayGoOn(y) {
		return nil
	}
	if len(r.pairs) < rows {
		r.pairs = append(r.pairs, make([]seams, rows-len(r.pairs))...)
	}
	p := &r.pairs[y]
	if a, b := r.screen.Changed(y), r.screen.Changed(y+1); !p.known || p.above != a || p.below != b {
		p.above, p.below, p.known = a, b, true
		p.list = r.compare(p.list[:0], y)
	}
	return p.list
}

// mayGoOn tells quickly of most rows that nothing goes on in the next one.
func (r *screenRows) mayGoOn(y int) bool {
	row := r.screen.Row(y)
	if row == "" || r.screen.Row(y+1) == "" {
		return false
	}
	_, cols := r.screen.Size()
	return len(row) >= cols-maxPadding || r.screen.Wrapped(y) || hasBorder(row) || isCut(row) || r.panels && r.endsPanel(y, len(row)-1)
}

// endsPanel tells whether the background behind column x of row y, the last one with text, is another somewhere.
func (r *screenRows) endsPanel(y, x int) bool {
	_, cols := r.screen.Size()
	a, b := r.screen.Cell(y, x).Style, r.screen.Cell(y, cols-1).Style
	return a.BG != b.BG || (a.Attr^b.Attr)&vt.Reverse != 0
}

// isCut tells a text whose last word is long enough to have been cut, or has what follows it for its value.
func isCut(s string) bool {
	if namesNext(s) {
		return true
	}
	n := 0
	for n < longWord && n < len(s) && isToken(s[len(s)-1-n]) {
		n++
	}
	return n == longWord
}

// namesNext tells a text that ends in a sign, or a word, behind which a value stands.
func namesNext[T string | []byte](s T) bool {
	n := len(s)
	switch s[n-1] {
	case ':', '=':
		return true
	case 'r', 'R':
		return n >= 6 && strings.EqualFold(string(s[n-6:]), "bearer")
	case 'c', 'C':
		return n >= 5 && strings.EqualFold(string(s[n-5:]), "basic")
	}
	return false
}

func (r *screenRows) compare(list []seam, y int) []seam {
	_, cols := r.screen.Size()
	a, b := r.grid(y), r.grid(y+1)
	left := 0
	for x := 0; x <= cols; x++ {
		if x < cols && !separates(a, b, x) {
			continue
		}
		if s, ok := r.seam(y, a, b, left, x); ok {
			list = append(list, s)
		}
		left = x + 1
	}
	return list
}

// separates tells whether a line or a scroll bar goes down through column x of two rows.
func separates(a, b *grid, x int) bool {
	c, d := a.ch[x], b.ch[x]
	switch {
	case isLine(c) && isLine(d):
		return true
	case c == border && d == blank: // the thumb of a bar that is not drawn else, or a shorter frame
		return atEdge(a, x)
	case c == blank && d == border:
		return atEdge(b, x)
	}
	return x == len(a.ch)-1 && isBar(c) && isBar(d) // a bar of ASCII
}

func isLine(c byte) bool { return c == border || c == '|' }

func isBar(c byte) bool { return c != 0 && strings.IndexByte("|#:^!*", c) >= 0 }

// atEdge tells whether x is the first or the last column of a row with text.
func atEdge(g *grid, x int) bool {
	from, to := g.trim(0, len(g.ch))
	return x == from || x == to-1
}

// seam returns that of a pane of the rows y and y+1.
func (r *screenRows) seam(y int, a, b *grid, left, right int) (s seam, ok bool) {
	begin, end := a.trim(left, right)
	if begin == end {
		return s, false
	}
	if end-begin > 2 && right-end <= maxPadding && isMark(a.ch[end-1]) && isToken(a.ch[end-2]) {
		end-- // a sign that says that it goes on
	}
	start, ok := goesOnAt(a, b, left, right)
	if !ok || !isChar(a.ch[end-1]) || !isChar(b.ch[start]) {
		return s, false
	}
	s = seam{left: left, right: right, end: end, start: start}
	if namesNext(a.ch[begin:end]) && (right > end || chars.IsAlnum(a.ch[end-1])) && b.word(start, right)-start > right-end-1 {
		s.kind, s.gap = hard, true // the value had no room behind its name
		return s, true
	}
	s.kind = r.joint(y, a, b, s, begin)
	return s, s.kind != apart
}

// isChar tells a character of ASCII that is seen.
func isChar(c byte) bool { return c > blank && c < 0x7f }

func isMark(c byte) bool { return c == '\\' || c == glyph }

// joint says how the text of row y that begins at a column goes on over a seam.
func (r *screenRows) joint(y int, a, b *grid, s seam, begin int) joint {
	_, cols := r.screen.Size()
	room := s.right - s.end
	switch {
	case room == 0 && s.right == cols && r.screen.Wrapped(y):
		return r.wrapped(y)
	case room <= maxPadding:
		return hard
	}
	for x := s.end; x < min(s.end+maxPadding+1, cols); x++ { // the background tells where a pane ends
		if a.turns[x] && b.turns[x] {
			return hard
		}
	}
	_, stop := b.trim(s.start, s.right)
	first := b.word(s.start, stop)
	last := s.end
	for last > begin && isToken(a.ch[last-1]) {
		last--
	}
	switch long := s.end - last; {
	case strings.IndexByte("-/+_=", a.ch[s.end-1]) >= 0 && s.end+first-s.start > s.right: // there is no room for what follows the sign
		return hard
	case long >= longPiece && first == stop && stop == s.end: // both were cut at one column
		return hard
	case long >= longPiece && last == begin && first == stop && stop < s.end && r.cutAt(y-1, s):
		return hard
	case long >= longWord:
		return soft
	}
	return apart
}

// cutAt tells whether row y was cut at the column of a seam below it.
func (r *screenRows) cutAt(y int, below seam) bool {
	for _, s := range r.seams(y) {
		if s.kind == hard && s.right == below.right && s.end == below.end {
			return true
		}
	}
	return false
}

// wrapped says how row y goes on, which the terminal wrapped. What was there before may stand in the next one yet.
func (r *screenRows) wrapped(y int) joint {
	_, cols := r.screen.Size()
	last, first, second := r.screen.Origin(y, cols-1), r.screen.Origin(y+1, 0), r.screen.Origin(y+1, 1)
	together := func(a, b int64) bool { return b >= a && b-a <= maxGap }
	if together(last.End, first.Start) && (second.End == 0 || together(first.End, second.Start)) {
		return sure
	}
	return hard
}

// goesOnAt returns where in a pane of row b text begins that may go on with that of row a, the one above it.
func goesOnAt(a, b *grid, left, right int) (start int, ok bool) {
	first, _ := a.trim(left, right)
	start, end := b.trim(left, right)
	if start == end {
		return 0, false
	}
	if n, isNumber := b.number(start, end); isNumber {
		switch m, above := a.number(first, right); {
		case above && (m == n || first == start):
			if m-first != n-start || string(a.ch[first:m]) != string(b.ch[start:n]) {
				return 0, false // another line
			}
			start = skipBlanks(b, n, end) // the same one
		case first > n:
			return 0, false // a line with a number, below one that goes on
		}
	}
	at := start
	for at < end && at-start < maxMarker && isMarker(a, b, at) {
		at++
	}
	if at > start && at < end {
		start = skipBlanks(b, at, end)
	}
	return start, start < end
}

func skipBlanks(g *grid, x, end int) int {
	for x < end && g.ch[x] == blank {
		x++
	}
	return x
}

// maxMarker is how many columns a sign before a row has at most.
const maxMarker = 4

// isMarker tells a sign before a row: one that says that it goes on, or that stands before the one above too.
func isMarker(a, b *grid, x int) bool {
	c := b.ch[x]
	alone := x+1 < len(b.ch) && b.ch[x+1] == blank
	switch {
	case c == '>' || c == glyph || c == border || c == '\\':
		return true
	case c == '+' && x+1 < len(b.ch) && (alone || b.ch[x+1] == '+'):
		return true
	}
	return c == a.ch[x] && isChar(c) && !chars.IsAlnum(c) && (!isToken(c) || alone && a.ch[x+1] == blank)
}

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
