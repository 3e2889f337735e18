package vt

import "slices"

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
