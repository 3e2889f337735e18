package vt

// A buffer is the primary or the alternate screen.
type buffer struct {
	rows  []*line // a window into back, which slides when the screen scrolls
	back  []*line
	off   int
	hist  history
	saved saved // DECSC
}

// saved is what DECSC keeps.
type saved struct {
	x, y    int
	pending bool
	pen     pen
	origin  bool
	sets    charsets
}

// setRows makes lines the rows of the buffer.
func (b *buffer) setRows(lines []*line) {
	b.back = make([]*line, 2*len(lines)+64)
	copy(b.back, lines)
	b.off = 0
	b.rows = b.back[:len(lines)]
}

// slide moves the window down by one row. The row that left it is the caller's; the last row of the window is to be set.
func (b *buffer) slide() *line {
	gone := b.rows[0]
	n := len(b.rows)
	b.off++
	if b.off+n > len(b.back) {
		copy(b.back, b.rows[1:])
		clear(b.back[n:])
		b.off = 0
	}
	b.rows = b.back[b.off : b.off+n]
	return gone
}

// history is the lines above the screen: a ring.
type history struct {
	lines []*line
	first int
	n     int
	max   int
}

func (h *history) at(i int) *line { return h.lines[(h.first+i)%len(h.lines)] }

// push adds a line below and returns the one that has to go for it, if any.
func (h *history) push(l *line) *line {
	if h.max == 0 {
		return l
	}
	if h.n == len(h.lines) && h.n < h.max {
		grown := make([]*line, min(max(64, 2*h.n), h.max))
		for i := range h.n {
			grown[i] = h.at(i)
		}
		h.lines, h.first = grown, 0
	}
	if h.n == h.max {
		gone := h.lines[h.first]
		h.lines[h.first] = l
		h.first = (h.first + 1) % len(h.lines)
		return gone
	}
	h.lines[(h.first+h.n)%len(h.lines)] = l
	h.n++
	return nil
}

func (h *history) clear() { h.lines, h.first, h.n = nil, 0, 0 }

// take returns the lines, oldest first, and forgets them.
func (h *history) take() []*line {
	lines := make([]*line, h.n)
	for i := range lines {
		lines[i] = h.at(i)
	}
	h.clear()
	return lines
}

// newLine returns a blank line.
func (s *grid) newLine() *line {
	l := &line{cells: make([]cell, s.cols)}
	if s.o.Origins {
		l.orig = make([]Origin, s.cols)
	}
	s.touch(l)
	return l
}

func (s *grid) touch(l *line) {
	s.gen++
	l.gen = s.gen
}

// blank clears a line that is used again. st is what erased said before lines were moved: it may look at all of them.
func (s *grid) blank(l *line, st uint32) *line {
	if l == nil {
		l = s.newLine()
	} else {
		l.wrapped, l.text = false, ""
		s.touch(l)
	}
	l.fill(cell{st: st}, Origin{})
	return l
}

// row is row y, as cells.
func (s *grid) row(y int) *line {
	l := s.buf.rows[y]
	if l.uniform {
		s.drawn += s.cols
		l.spread()
	}
	return l
}

// erased is the style of cells that are erased now: the background alone.
func (s *grid) erased() uint32 {
	if s.pen.colors>>32 == 0 {
		return 0
	}
	return s.style(&pen{colors: s.pen.colors &^ 0xffffffff})
}

// style is the index of a pen: that of the screen, or one without a link.
func (s *grid) style(p *pen) uint32 {
	if *p == s.penOf && !s.stale {
		return s.penID
	}
	if s.pens.full() {
		s.collect()
	}
	s.penOf, s.stale = *p, false
	s.penID = s.pens.put(*p)
	return s.penID
}

// feedLines scrolls the rows from the top margin to the bottom margin up by n, at most all of them, into the scrollback where they
// begin at the top.
func (s *grid) feedLines(n int) {
	b := s.buf
	if s.lrmm && (s.left > 0 || s.right < s.cols-1) {
		s.scrollUp(s.top, n)
		return
	}
	st, whole, rows := s.erased(), s.top == 0 && s.bottom == s.rows-1, b.rows[s.top:s.bottom+1]
	s.spare = append(s.spare[:0], rows[:n]...)
	if !whole {
		copy(rows, rows[n:])
	}
	for i, l := range s.spare {
		y := s.bottom - n + 1 + i
		if whole {
			b.slide()
			y = s.bottom
		}
		if s.top == 0 {
			if b == &s.primary {
				s.scrolled++
			}
			l = b.hist.push(l)
		}
		b.rows[y] = s.blank(l, st)
	}
	s.seam(s.top - 1)
}

// seam forgets that row y goes on in the next one, where the two do not belong together any longer.
func (s *grid) seam(y int) {
	if y >= 0 && y < s.rows && s.buf.rows[y].wrapped {
		s.buf.rows[y].wrapped = false
		s.touch(s.buf.rows[y])
	}
}

// scrollUp moves the rows from y to the bottom margin up by n, between the left and right margin; blank ones come in below.
func (s *grid) scrollUp(y, n int) {
	n = min(n, s.bottom-y+1)
	if n <= 0 {
		return
	}
	s.gen++
	if s.lrmm && (s.left > 0 || s.right < s.cols-1) {
		for r := y; r <= s.bottom-n; r++ {
			s.copyCells(r, r+n)
		}
		for r := s.bottom - n + 1; r <= s.bottom; r++ {
			s.erase(r, s.left, s.right+1)
		}
		return
	}
	st, rows := s.erased(), s.buf.rows[y:s.bottom+1]
	s.spare = append(s.spare[:0], rows[:n]...)
	copy(rows, rows[n:])
	for i, l := range s.spare {
		rows[len(rows)-n+i] = s.blank(l, st)
	}
	s.seam(y - 1)
	s.seam(s.bottom - n)
}

// scrollDown moves them down; blank ones come in above.
func (s *grid) scrollDown(y, n int) {
	n = min(n, s.bottom-y+1)
	if n <= 0 {
		return
	}
	s.gen++
	if s.lrmm && (s.left > 0 || s.right < s.cols-1) {
		for r := s.bottom; r >= y+n; r-- {
			s.copyCells(r, r-n)
		}
		for r := y; r < y+n; r++ {
			s.erase(r, s.left, s.right+1)
		}
		return
	}
	st, rows := s.erased(), s.buf.rows[y:s.bottom+1]
	s.spare = append(s.spare[:0], rows[len(rows)-n:]...)
	copy(rows[n:], rows)
	for i, l := range s.spare {
		rows[i] = s.blank(l, st)
	}
	s.seam(y - 1)
	s.seam(s.bottom)
}

// copyCells copies what stands between the margins in row from to row to.
func (s *grid) copyCells(to, from int) {
	a, b := s.row(to), s.row(from)
	for _, l := range []*line{a, b} {
		l.split(s.left)
		l.split(s.right + 1)
	}
	copy(a.cells[s.left:s.right+1], b.cells[s.left:s.right+1])
	if a.orig != nil {
		copy(a.orig[s.left:s.right+1], b.orig[s.left:s.right+1])
	}
	a.used = max(a.used, min(b.used, s.right+1))
	a.wrapped = false
	s.touch(a)
}

// erase makes the cells of a row from lo to before hi blank, in the background of the pen.
func (s *grid) erase(y, lo, hi int) {
	if lo >= hi {
		return
	}
	l := s.buf.rows[y]
	if st := s.erased(); lo == 0 && hi == s.cols {
		l.fill(cell{st: st}, Origin{})
	} else {
		l.solid()
		l.split(lo)
		l.split(hi)
		l.clear(lo, hi, st)
	}
	if hi == s.cols {
		l.wrapped = false
	}
	s.touch(l)
}

// A cell is one place of a line. It is small, for lines are copied and cleared all the time.
type cell struct {
	ch uint32 // 0: blank; a code point, or with isCluster an index into the screen's clusters; filler
	st uint32 // index into the screen's pens
}

const (
	isWide    = 1 << 31 // two columns; filler stands in the second
	isCluster = 1 << 30
	filler    = 1 << 29
	chMask    = 1<<29 - 1
)

// A line is one row, on the screen or above it.
type line struct {
	cells   []cell   // one a column
	used    int      // cells from here on are blank and have no style
	orig    []Origin // one a column, or nil
	gen     uint64   // another one after each change
	wrapped bool     // it goes on in the next line
	text    string   // what Row says, as of textGen
	textGen uint64

	// A line that is the same throughout is one cell, until somebody looks: a control of a few bytes fills the whole screen.
	uniform bool
	of      cell   // every cell, with its filler where it is wide
	tail    cell   // the last one, where wide ones leave it over
	ofOrig  Origin // of each
}

// fill makes every cell of the line the same. What is behind wide ones is blank.
func (l *line) fill(c cell, o Origin) { l.uniform, l.of, l.tail, l.ofOrig = true, c, cell{}, o }

// solid returns the line with its cells in their places.
func (l *line) solid() *line {
	if l.uniform {
		l.spread()
	}
	return l
}

func (l *line) spread() {
	l.uniform = false
	for i := range l.orig {
		l.orig[i] = l.ofOrig
	}
	if l.of == (cell{}) {
		clear(l.cells[:l.used])
		l.used = 0
		return
	}
	l.used = len(l.cells)
	if l.of.ch&isWide == 0 {
		for i := range l.cells {
			l.cells[i] = l.of
		}
		return
	}
	for i := 1; i < len(l.cells); i += 2 {
		l.cells[i-1], l.cells[i] = l.of, cell{filler, l.of.st}
	}
	if last := len(l.cells) - 1; last%2 == 0 {
		l.cells[last] = l.tail
		if l.orig != nil {
			l.orig[last] = Origin{}
		}
	}
}

// each shows f the cells that are not blank.
func (l *line) each(f func(*cell)) {
	if l.uniform {
		f(&l.of)
		f(&l.tail)
		return
	}
	for i := range l.cells[:l.used] {
		f(&l.cells[i])
	}
}

// clear makes the cells from lo to before hi blank, in style st.
func (l *line) clear(lo, hi int, st uint32) {
	if l.orig != nil {
		clear(l.orig[lo:hi])
	}
	if st == 0 {
		if hi >= l.used {
			if lo < l.used {
				clear(l.cells[lo:l.used])
				l.used = lo
			}
			return
		}
		clear(l.cells[lo:hi])
		return
	}
	for i := lo; i < hi; i++ {
		l.cells[i] = cell{st: st}
	}
	l.used = max(l.used, hi)
}

// move copies n cells from column from to column to, which may overlap.
func (l *line) move(to, from, n int) {
	if n <= 0 {
		return
	}
	copy(l.cells[to:to+n], l.cells[from:from+n])
	if l.orig != nil {
		copy(l.orig[to:to+n], l.orig[from:from+n])
	}
	if from < l.used {
		l.used = max(l.used, min(to+n, l.used+to-from))
	}
}

// split makes the wide character blank that a cut before column x would halve.
func (l *line) split(x int) {
	if x <= 0 || x >= len(l.cells) || l.cells[x].ch != filler {
		return
	}
	l.cells[x-1].ch, l.cells[x].ch = 0, 0
	if l.orig != nil {
		l.orig[x-1], l.orig[x] = Origin{}, Origin{}
	}
}

// resize gives the line another number of columns; what does not fit is lost.
func (l *line) resize(cols int, origins bool) {
	if cols < len(l.cells) {
		l.split(cols)
	}
	cells := make([]cell, cols)
	copy(cells, l.cells)
	if origins {
		orig := make([]Origin, cols)
		copy(orig, l.orig)
		l.orig = orig
	}
	l.cells, l.used = cells, min(l.used, cols)
}

// A pen is how the next character is drawn, as cells hold it.
type pen struct {
	colors  uint64 // foreground and, above, background
	more    uint64 // underline's colour and, above, the index of the link
	attr    Attr
	under   Underline
	protect bool // from selective erasing (DECSCA)
}

func (p *pen) style() Style {
	return Style{FG: Color(p.colors), BG: Color(p.colors >> 32), UnderlineColor: Color(p.more), Attr: p.attr, Underline: p.under}
}

func (p *pen) setFG(c Color)        { p.colors = p.colors&^0xffffffff | uint64(c) }
func (p *pen) setBG(c Color)        { p.colors = p.colors&0xffffffff | uint64(c)<<32 }
func (p *pen) setUnderline(c Color) { p.more = p.more&^0xffffffff | uint64(c) }
func (p *pen) setLink(i uint32)     { p.more = p.more&0xffffffff | uint64(i)<<32 }
func (p *pen) link() uint32         { return uint32(p.more >> 32) }

// eraseSelective erases what DECSCA does not protect.
func (s *grid) eraseSelective(y, lo, hi int) {
	if !s.protects {
		s.erase(y, lo, hi)
		return
	}
	l := s.row(y)
	for x := lo; x < hi; x++ {
		from := x
		for x < hi && !s.pens.list[l.cells[x].st].protect {
			x++
		}
		s.erase(y, from, x)
		l.solid()
	}
}

// clearRows makes every row blank.
func (s *grid) clearRows() {
	st := s.erased()
	for _, l := range s.buf.rows {
		s.blank(l, st)
	}
}

// mend makes halves of wide characters blank that a copy to the cells from lo to before hi cut off.
func (l *line) mend(lo, hi int) {
	if l.cells[lo].ch == filler && (lo == 0 || l.cells[lo-1].ch&isWide == 0) {
		l.cells[lo].ch = 0
	}
	if l.cells[hi-1].ch&isWide != 0 && (hi == len(l.cells) || l.cells[hi].ch != filler) {
		l.cells[hi-1].ch = 0
	}
}

func (s *grid) insertAt(y, x, n int) {
	l := s.row(y)
	n = min(n, s.right+1-x)
	l.split(x)
	l.split(s.right + 1 - n)
	l.split(s.right + 1)
	l.move(x+n, x, s.right+1-x-n)
	l.clear(x, x+n, s.erased())
	l.wrapped = false
	s.touch(l)
}

func (s *grid) deleteAt(y, x, n int) {
	l := s.row(y)
	n = min(n, s.right+1-x)
	l.split(x)
	l.split(x + n)
	l.split(s.right + 1)
	l.move(x, x+n, s.right+1-x-n)
	l.clear(s.right+1-n, s.right+1, s.erased())
	l.wrapped = false
	s.touch(l)
}

// shiftColumns inserts n columns at x between the margins, or deletes -n.
func (s *grid) shiftColumns(x, n int) {
	for y := s.top; y <= s.bottom; y++ {
		if n > 0 {
			s.insertAt(y, x, n)
		} else {
			s.deleteAt(y, x, -n)
		}
	}
}
