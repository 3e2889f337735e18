package vt

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// A cursor is where a program writes on a grid: its place, and how it prints and moves there.
type cursor struct {
	grid

	x, y    int
	pending bool // the last column was written
	sets    charsets
	tabs    tabStops

	cluster   grapheme.State // what was printed last, where nothing came between
	lastRune  rune           // of REP; 0 where there is none
	lastFrom  int64          // where it stands in the stream
	lastTo    int64
	emojiWide bool // mode 2027

	autowrap, insert, origin, newline bool
}

func (s *cursor) lineFeed() {
	s.seam(s.y)
	if s.newline {
		s.x = s.lineStart()
	}
	s.index()
}

func (s *cursor) index() {
	s.pending = false
	s.down()
}

// down moves the cursor down by one row, or scrolls at the bottom margin.
func (s *cursor) down() {
	switch {
	case s.y == s.bottom:
		if s.x >= s.left && s.x <= s.right {
			s.feedLines(1)
		}
	case s.y < s.rows-1:
		s.y++
	}
}

func (s *cursor) reverseIndex() {
	s.pending = false
	switch {
	case s.y == s.top:
		if s.x >= s.left && s.x <= s.right {
			s.scrollDown(s.top, 1)
		}
	case s.y > 0:
		s.y--
	}
}

func (s *cursor) nextLine() {
	s.x = s.lineStart()
	s.index()
}

// backIndex is DECBI: a column to the left, or the columns between the margins to the right.
func (s *cursor) backIndex() {
	s.pending = false
	switch {
	case s.x == s.left && s.y >= s.top && s.y <= s.bottom:
		s.shiftColumns(s.left, 1)
	case s.x > 0 && s.x != s.left:
		s.x--
	}
}

// forwardIndex is DECFI.
func (s *cursor) forwardIndex() {
	s.pending = false
	switch {
	case s.x == s.right && s.y >= s.top && s.y <= s.bottom:
		s.shiftColumns(s.left, -1)
	case s.x < s.cols-1 && s.x != s.right:
		s.x++
	}
}

// tab moves the cursor n tab stops to the right, up to the last column.
func (s *cursor) tab(n int) {
	if s.pending {
		return
	}
	end := s.edge() - 1
	for ; n > 0 && s.x < end; n-- {
		s.x++
		for s.x < end && !s.tabs[s.x] {
			s.x++
		}
	}
}

// backTab moves it n stops to the left.
func (s *cursor) backTab(n int) {
	s.pending = false
	for ; n > 0 && s.x > 0; n-- {
		s.x--
		for s.x > 0 && !s.tabs[s.x] {
			s.x--
		}
	}
}

// A rect is a rectangle of cells: from top and left to before bottom and right.
type rect struct{ top, left, bottom, right int }

// area reads a rectangle from parameter i on, as the rectangle controls have it: relative to the margins in origin mode.
func (s *cursor) area(m *machine, i int) (rect, bool) {
	top, left, bottom, right := 0, 0, s.rows, s.cols
	if s.origin {
		top, left, bottom, right = s.top, s.left, s.bottom+1, s.right+1
	}
	r := rect{
		top:    top + m.num(i, 1) - 1,
		left:   left + m.num(i+1, 1) - 1,
		bottom: min(top+m.num(i+2, bottom-top), bottom),
		right:  min(left+m.num(i+3, right-left), right),
	}
	return r, r.top < r.bottom && r.left < r.right
}

func (s *cursor) each(r rect, do func(y, lo, hi int)) {
	for y := r.top; y < r.bottom; y++ {
		do(y, r.left, r.right)
	}
}

// fill is DECFRA: any printable character of ISO 8859-1.
func (s *cursor) fill(r rect, ch int) {
	if ch < 0x20 || ch > 0x7e && ch < 0xa0 || ch > 0xff {
		return
	}
	st := s.style(&s.pen)
	s.each(r, func(y, lo, hi int) {
		l := s.buf.rows[y]
		if lo == 0 && hi == s.cols {
			l.fill(cell{uint32(ch), st}, Origin{})
			s.touch(l)
			return
		}
		l.solid()
		l.split(lo)
		l.split(hi)
		l.clear(lo, hi, 0)
		for x := lo; x < hi; x++ {
			l.cells[x] = cell{uint32(ch), st}
		}
		l.used = max(l.used, hi)
		s.touch(l)
	})
}

// copyArea is DECCRA, to where row and col are the upper left corner.
func (s *cursor) copyArea(r rect, row, col int) {
	bottom, right := s.rows, s.cols
	if s.origin {
		row, col, bottom, right = row+s.top, col+s.left, s.bottom+1, s.right+1
	}
	h, w := min(r.bottom-r.top, bottom-row), min(r.right-r.left, right-col)
	if h <= 0 || w <= 0 || row == r.top && col == r.left {
		return
	}
	for i := range h {
		y := i
		if row > r.top {
			y = h - 1 - i // a row is read before it is written
		}
		from, l := s.row(r.top+y), s.row(row+y)
		cells := from.cells[r.left : r.left+w]
		var orig []Origin
		if l.orig != nil {
			orig = from.orig[r.left : r.left+w]
		}
		if from == l { // which is cut at the edges first
			cells, orig = slices.Clone(cells), slices.Clone(orig)
		}
		l.split(col)
		l.split(col + w)
		copy(l.cells[col:], cells)
		if l.orig != nil {
			copy(l.orig[col:], orig)
		}
		l.used = max(l.used, col+w)
		l.mend(col, col+w)
		s.touch(l)
	}
}

// tabStops holds a bit a column.
type tabStops []bool

func newTabStops(cols int) tabStops {
	t := make(tabStops, cols)
	t.every8(0)
	return t
}

func (t tabStops) every8(from int) {
	for i := (from + 7) &^ 7; i < len(t); i += 8 {
		t[i] = true
	}
}

// resize keeps the stops that there are; new columns have one every 8.
func (t *tabStops) resize(cols int) {
	was := len(*t)
	if cols <= was {
		*t = (*t)[:cols]
		return
	}
	*t = append(*t, make(tabStops, cols-was)...)
	clear((*t)[was:])
	t.every8(was)
}

// to places the cursor, within the margins in origin mode.
func (s *cursor) to(row, col int) {
	s.pending = false
	if s.origin {
		s.y, s.x = min(max(row, 0)+s.top, s.bottom), min(max(col, 0)+s.left, s.right)
		return
	}
	s.y, s.x = min(max(row, 0), s.rows-1), min(max(col, 0), s.cols-1)
}

func (s *cursor) relativeRow() int {
	if s.origin {
		return s.y - s.top
	}
	return s.y
}

func (s *cursor) relativeCol() int {
	if s.origin {
		return s.x - s.left
	}
	return s.x
}

func (s *cursor) up(n int) {
	s.pending = false
	least := 0
	if s.y >= s.top {
		least = s.top
	}
	s.y = max(s.y-n, least)
}

func (s *cursor) downBy(n int) {
	s.pending = false
	most := s.rows - 1
	if s.y <= s.bottom {
		most = s.bottom
	}
	s.y = min(s.y+n, most)
}

func (s *cursor) rightBy(n int) {
	s.pending = false
	s.x = min(s.x+n, s.edge()-1)
}

func (s *cursor) leftBy(n int) {
	s.pending = false
	least := 0
	if s.x >= s.left {
		least = s.left
	}
	s.x = max(s.x-n, least)
}

func (s *cursor) clearTabs(how int) {
	switch how {
	case 0:
		s.tabs[s.x] = false
	case 3:
		clear(s.tabs)
	}
}

// setRows is DECSTBM.
func (s *cursor) setRows(top, bottom int) {
	bottom = min(bottom, s.rows-1)
	if top >= bottom {
		return
	}
	s.top, s.bottom = top, bottom
	s.to(0, 0)
}

// setColumns is DECSLRM.
func (s *cursor) setColumns(left, right int) {
	right = min(right, s.cols-1)
	if left >= right {
		return
	}
	s.left, s.right = left, right
	s.to(0, 0)
}

// within reports whether the cursor is between all margins.
func (s *cursor) within() bool {
	return s.y >= s.top && s.y <= s.bottom && s.x >= s.left && s.x <= s.right
}

func (s *cursor) insertLines(n int) {
	s.pending = false
	if s.within() {
		s.scrollDown(s.y, n)
		s.x = s.left
	}
}

func (s *cursor) deleteLines(n int) {
	s.pending = false
	if s.within() {
		s.scrollUp(s.y, n)
		s.x = s.left
	}
}

// insertCells moves what stands from the cursor to the margin to the right by n.
func (s *cursor) insertCells(n int) {
	if s.x < s.left || s.x > s.right {
		return
	}
	s.insertAt(s.y, s.x, n)
}

func (s *cursor) deleteCells(n int) {
	if s.x < s.left || s.x > s.right {
		return
	}
	s.deleteAt(s.y, s.x, n)
}

// eraseDisplay is ED and DECSED; erase clears part of a row.
func (s *cursor) eraseDisplay(how int, erase func(y, lo, hi int)) {
	switch how {
	case 0:
		s.eraseLine(0, erase)
		s.eraseRows(s.y+1, s.rows, erase)
	case 1:
		s.eraseRows(0, s.y, erase)
		s.eraseLine(1, erase)
	case 2:
		s.eraseRows(0, s.rows, erase)
	case 3:
		s.primary.hist.clear()
	}
}

func (s *cursor) eraseRows(from, to int, erase func(y, lo, hi int)) {
	for y := from; y < to; y++ {
		s.seam(y - 1)
		erase(y, 0, s.cols)
	}
}

// eraseLine is EL and DECSEL. The cursor that waits to wrap stands behind the last column.
func (s *cursor) eraseLine(how int, erase func(y, lo, hi int)) {
	x := s.x
	if s.pending {
		x++
	}
	switch how {
	case 0:
		erase(s.y, x, s.cols)
	case 1:
		erase(s.y, 0, min(x+1, s.cols))
	case 2:
		s.seam(s.y - 1)
		erase(s.y, 0, s.cols)
	}
}
