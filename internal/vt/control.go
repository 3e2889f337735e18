package vt

import "slices"

// control executes a C0 or C1 control.
func (s *Screen) control(c byte, _ int64, _ int) {
	if c == 0 || c == 0x7f {
		return
	}
	s.forget()
	switch c {
	case 0x07:
		s.tell(EventBell, "")
	case 0x08:
		s.backspace()
	case '\t':
		s.tab(1)
	case '\n', 0x0b, 0x0c:
		s.lineFeed()
	case '\r':
		s.pending = false
		s.x = s.lineStart()
	case 0x0e:
		s.sets.gl = 1
	case 0x0f:
		s.sets.gl = 0
	case 0x84: // IND
		s.index()
	case 0x85: // NEL
		s.nextLine()
	case 0x88: // HTS
		s.tabs[s.x] = true
	case 0x8d: // RI
		s.reverseIndex()
	case 0x8e: // SS2
		s.sets.single = 2
	case 0x8f: // SS3
		s.sets.single = 3
	}
}

func (s *Screen) tell(k EventKind, text string) {
	if s.o.Event != nil {
		s.o.Event(Event{Kind: k, Text: text})
	}
}

func (s *Screen) backspace() {
	if s.pending {
		s.pending = false
		if s.modes.dec[45] && s.autowrap {
			return // reverse wrap: the cursor stands behind the last column
		}
	}
	switch {
	case s.x > 0 && s.x != s.left:
		s.x--
	case s.x > 0 && s.x == s.left && !s.lrmm:
		s.x--
	case s.modes.dec[45] && s.autowrap && s.y > s.top && s.buf.rows[s.y-1].wrapped:
		s.y--
		s.x = s.right
	}
}

func (s *Screen) lineFeed() {
	s.seam(s.y)
	if s.newline {
		s.x = s.lineStart()
	}
	s.index()
}

func (s *Screen) index() {
	s.pending = false
	s.down()
}

// down moves the cursor down by one row, or scrolls at the bottom margin.
func (s *Screen) down() {
	switch {
	case s.y == s.bottom:
		if s.x >= s.left && s.x <= s.right {
			s.feedLines(1)
		}
	case s.y < s.rows-1:
		s.y++
	}
}

func (s *Screen) reverseIndex() {
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

func (s *Screen) nextLine() {
	s.x = s.lineStart()
	s.index()
}

// escape executes ESC, intermediates, final.
func (s *Screen) escape(m *machine, final byte) {
	if final == '\\' && m.inters == 0 {
		return // the end of ST
	}
	s.forget()
	if m.inters == 1 {
		s.escapeInter(m.inter[0], final)
		return
	}
	if m.inters > 0 {
		return
	}
	switch final {
	case '7':
		s.save()
	case '8':
		s.restore()
	case '=', '>': // DECKPAM, DECKPNM
		s.modes.dec[66] = final == '='
	case 'c':
		s.reset()
	case 'n', 'o': // LS2, LS3
		s.sets.gl = 2 + final - 'n'
	case '6': // DECBI
		s.backIndex()
	case '9': // DECFI
		s.forwardIndex()
	case 'D', 'E', 'H', 'M', 'N', 'O':
		s.control(final+0x40, 0, 0)
	}
}

func (s *Screen) escapeInter(inter, final byte) {
	switch inter {
	case '(', ')', '*', '+':
		s.sets.designate(int(inter-'('), final)
	case '-', '.', '/': // sets of 96
		s.sets.designate(int(inter-'-')+1, 'B')
	case '#':
		if final == '8' {
			s.align()
		}
	}
}

// align is DECALN.
func (s *Screen) align() {
	s.margins()
	s.x, s.y, s.pending, s.origin = 0, 0, false, false
	s.modes.dec[6] = false
	for _, l := range s.buf.rows {
		l.fill(cell{ch: 'E'}, Origin{})
		l.wrapped = false
		s.touch(l)
	}
}

// backIndex is DECBI: a column to the left, or the columns between the margins to the right.
func (s *Screen) backIndex() {
	s.pending = false
	switch {
	case s.x == s.left && s.y >= s.top && s.y <= s.bottom:
		s.shiftColumns(s.left, 1)
	case s.x > 0 && s.x != s.left:
		s.x--
	}
}

// forwardIndex is DECFI.
func (s *Screen) forwardIndex() {
	s.pending = false
	switch {
	case s.x == s.right && s.y >= s.top && s.y <= s.bottom:
		s.shiftColumns(s.left, -1)
	case s.x < s.cols-1 && s.x != s.right:
		s.x++
	}
}

// save is DECSC.
func (s *Screen) save() {
	s.buf.saved = saved{s.x, s.y, s.pending, s.pen, s.origin, s.sets}
}

// restore is DECRC.
func (s *Screen) restore() {
	v := &s.buf.saved
	s.pen, s.origin, s.sets = v.pen, v.origin, v.sets
	s.modes.dec[6] = s.origin
	s.x, s.y = min(v.x, s.cols-1), min(v.y, s.rows-1)
	if s.origin {
		s.x, s.y = min(max(s.x, s.left), s.right), min(max(s.y, s.top), s.bottom)
	}
	s.pending = v.pending && s.x == v.x
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

// tab moves the cursor n tab stops to the right, up to the last column.
func (s *Screen) tab(n int) {
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
func (s *Screen) backTab(n int) {
	s.pending = false
	for ; n > 0 && s.x > 0; n-- {
		s.x--
		for s.x > 0 && !s.tabs[s.x] {
			s.x--
		}
	}
}

// charset is a character set of 94 characters that ASCII is replaced by.
type charset uint8

const (
	setASCII charset = iota
	setDrawing
	setUK
)

// charsets is what SCS, the shifts and the single shifts designate.
type charsets struct {
	g      [4]charset
	gl     uint8
	single uint8 // of SS2 and SS3, for one character
}

func (c *charsets) translate(r rune) rune {
	set := c.g[c.gl]
	if c.single > 0 {
		set, c.single = c.g[c.single], 0
	}
	switch {
	case set == setDrawing && r >= 0x60 && r <= 0x7e:
		return drawing[r-0x60]
	case set == setUK && r == '#':
		return '£'
	}
	return r
}

// drawing is DEC special graphics, from 0x60 on; 0x5f stays an underscore, as other terminals have it.
var drawing = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// designate is SCS: final says which set G0…G3 gets.
func (c *charsets) designate(g int, final byte) {
	switch final {
	case '0', '2':
		c.g[g] = setDrawing
	case 'A':
		c.g[g] = setUK
	default:
		c.g[g] = setASCII
	}
}

// A rect is a rectangle of cells: from top and left to before bottom and right.
type rect struct{ top, left, bottom, right int }

// area reads a rectangle from parameter i on, as the rectangle controls have it: relative to the margins in origin mode.
func (s *Screen) area(m *machine, i int) (rect, bool) {
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

// rectangle executes DECERA, DECSERA, DECFRA and DECCRA.
func (s *Screen) rectangle(m *machine, which uint32) {
	switch which {
	case seq(0, '$', 'z'):
		if r, ok := s.area(m, 0); ok {
			s.each(r, s.erase)
		}
	case seq(0, '$', '{'):
		if r, ok := s.area(m, 0); ok {
			s.each(r, s.eraseSelective)
		}
	case seq(0, '$', 'x'):
		if r, ok := s.area(m, 1); ok {
			s.fill(r, m.raw(0, 0))
		}
	case seq(0, '$', 'v'):
		if r, ok := s.area(m, 0); ok {
			s.copyArea(r, m.num(5, 1)-1, m.num(6, 1)-1)
		}
	}
}

func (s *Screen) each(r rect, do func(y, lo, hi int)) {
	for y := r.top; y < r.bottom; y++ {
		do(y, r.left, r.right)
	}
}

// fill is DECFRA: any printable character of ISO 8859-1.
func (s *Screen) fill(r rect, ch int) {
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
func (s *Screen) copyArea(r rect, row, col int) {
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

// mend makes halves of wide characters blank that a copy to the cells from lo to before hi cut off.
func (l *line) mend(lo, hi int) {
	if l.cells[lo].ch == filler && (lo == 0 || l.cells[lo-1].ch&isWide == 0) {
		l.cells[lo].ch = 0
	}
	if l.cells[hi-1].ch&isWide != 0 && (hi == len(l.cells) || l.cells[hi].ch != filler) {
		l.cells[hi-1].ch = 0
	}
}

// eraseSelective erases what DECSCA does not protect.
func (s *Screen) eraseSelective(y, lo, hi int) {
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
