package vt

// num is parameter i, def where it is left out or 0.
func (m *machine) num(i, def int) int {
	if v := m.raw(i, 0); v > 0 {
		return v
	}
	return def
}

// raw is parameter i, def where it is left out. It is capped to what positions and counts can be.
func (m *machine) raw(i, def int) int {
	if i >= min(m.nparams, maxParams) || m.params[i].value < 0 {
		return def
	}
	return min(int(m.params[i].value), 1<<20)
}

// seq names a CSI sequence: prefix, intermediates, final.
func seq(prefix, inter, final byte) uint32 {
	return uint32(prefix)<<16 | uint32(inter)<<8 | uint32(final)
}

// csi executes a control sequence.
func (s *Screen) csi(m *machine, final byte) {
	if final == 'm' && m.prefix == 0 && m.inters == 0 {
		s.sgr(m)
		s.forget()
		return
	}
	if final == 'b' && m.prefix == 0 && m.inters == 0 {
		s.repeat(m.num(0, 1))
		return
	}
	s.forget()
	if m.inters > 1 {
		return
	}
	if m.prefix == 0 && m.inters == 0 {
		if !s.move(m, final) {
			s.edit(m, final)
		}
		return
	}
	s.extended(m, seq(m.prefix, m.inter[0], final))
}

// move executes what moves the cursor.
func (s *Screen) move(m *machine, final byte) bool {
	n := m.num(0, 1)
	switch final {
	case 'A':
		s.up(n)
	case 'B':
		s.downBy(n)
	case 'C':
		s.rightBy(n)
	case 'D':
		s.leftBy(n)
	case 'E':
		s.downBy(n)
		s.x = s.lineStart()
	case 'F':
		s.up(n)
		s.x = s.lineStart()
	case 'G', '`':
		s.to(s.relativeRow(), n-1)
	case 'H', 'f':
		s.to(n-1, m.num(1, 1)-1)
	case 'd':
		s.to(n-1, s.relativeCol())
	case 'a': // unlike CUF and CUD, HPR and VPR stop at the edge of the screen alone
		s.to(s.relativeRow(), s.relativeCol()+n)
	case 'e':
		s.to(s.relativeRow()+n, s.relativeCol())
	case 'I':
		s.tab(n)
	case 'Z':
		s.backTab(n)
	default:
		return false
	}
	return true
}

// to places the cursor, within the margins in origin mode.
func (s *Screen) to(row, col int) {
	s.pending = false
	if s.origin {
		s.y, s.x = min(max(row, 0)+s.top, s.bottom), min(max(col, 0)+s.left, s.right)
		return
	}
	s.y, s.x = min(max(row, 0), s.rows-1), min(max(col, 0), s.cols-1)
}

func (s *Screen) relativeRow() int {
	if s.origin {
		return s.y - s.top
	}
	return s.y
}

func (s *Screen) relativeCol() int {
	if s.origin {
		return s.x - s.left
	}
	return s.x
}

func (s *Screen) up(n int) {
	s.pending = false
	least := 0
	if s.y >= s.top {
		least = s.top
	}
	s.y = max(s.y-n, least)
}

func (s *Screen) downBy(n int) {
	s.pending = false
	most := s.rows - 1
	if s.y <= s.bottom {
		most = s.bottom
	}
	s.y = min(s.y+n, most)
}

func (s *Screen) rightBy(n int) {
	s.pending = false
	s.x = min(s.x+n, s.edge()-1)
}

func (s *Screen) leftBy(n int) {
	s.pending = false
	least := 0
	if s.x >= s.left {
		least = s.left
	}
	s.x = max(s.x-n, least)
}

// edit executes the other sequences without prefix and intermediates.
func (s *Screen) edit(m *machine, final byte) {
	n := m.num(0, 1)
	switch final {
	case '@':
		s.pending = false
		s.insertCells(n)
	case 'P':
		s.pending = false
		s.deleteCells(n)
	case 'X':
		s.pending = false
		s.erase(s.y, s.x, min(s.x+n, s.cols))
	case 'J':
		s.eraseDisplay(m.raw(0, 0), s.erase)
	case 'K':
		s.eraseLine(m.raw(0, 0), s.erase)
	case 'L':
		s.insertLines(n)
	case 'M':
		s.deleteLines(n)
	case 'S':
		s.scrollUp(s.top, n)
	case 'T':
		if m.nparams <= 1 {
			s.scrollDown(s.top, n)
		}
	case '^':
		s.scrollDown(s.top, n)
	case 'g':
		s.clearTabs(m.raw(0, 0))
	case 'h', 'l':
		for i := range max(m.nparams, 1) {
			s.setMode(m.raw(i, 0), final == 'h')
		}
	case 'r':
		s.setRows(m.num(0, 1)-1, m.num(1, s.rows)-1)
	case 's':
		if s.lrmm {
			s.setColumns(m.num(0, 1)-1, m.num(1, s.cols)-1)
		} else { // SCOSC; unlike DECSC it does not keep that the next character wraps
			s.save()
			s.buf.saved.pending = false
		}
	case 'u':
		s.restore()
	case 'c', 'n', 't', 'x':
		s.report(m, final)
	}
}

func (s *Screen) clearTabs(how int) {
	switch how {
	case 0:
		s.tabs[s.x] = false
	case 3:
		clear(s.tabs)
	}
}

// setRows is DECSTBM.
func (s *Screen) setRows(top, bottom int) {
	bottom = min(bottom, s.rows-1)
	if top >= bottom {
		return
	}
	s.top, s.bottom = top, bottom
	s.to(0, 0)
}

// setColumns is DECSLRM.
func (s *Screen) setColumns(left, right int) {
	right = min(right, s.cols-1)
	if left >= right {
		return
	}
	s.left, s.right = left, right
	s.to(0, 0)
}

// within reports whether the cursor is between all margins.
func (s *Screen) within() bool {
	return s.y >= s.top && s.y <= s.bottom && s.x >= s.left && s.x <= s.right
}

func (s *Screen) insertLines(n int) {
	s.pending = false
	if s.within() {
		s.scrollDown(s.y, n)
		s.x = s.left
	}
}

func (s *Screen) deleteLines(n int) {
	s.pending = false
	if s.within() {
		s.scrollUp(s.y, n)
		s.x = s.left
	}
}

// insertCells moves what stands from the cursor to the margin to the right by n.
func (s *Screen) insertCells(n int) {
	if s.x < s.left || s.x > s.right {
		return
	}
	s.insertAt(s.y, s.x, n)
}

func (s *Screen) insertAt(y, x, n int) {
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

func (s *Screen) deleteCells(n int) {
	if s.x < s.left || s.x > s.right {
		return
	}
	s.deleteAt(s.y, s.x, n)
}

func (s *Screen) deleteAt(y, x, n int) {
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
func (s *Screen) shiftColumns(x, n int) {
	for y := s.top; y <= s.bottom; y++ {
		if n > 0 {
			s.insertAt(y, x, n)
		} else {
			s.deleteAt(y, x, -n)
		}
	}
}

// eraseDisplay is ED and DECSED; erase clears part of a row.
func (s *Screen) eraseDisplay(how int, erase func(y, lo, hi int)) {
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

func (s *Screen) eraseRows(from, to int, erase func(y, lo, hi int)) {
	for y := from; y < to; y++ {
		s.seam(y - 1)
		erase(y, 0, s.cols)
	}
}

// eraseLine is EL and DECSEL. The cursor that waits to wrap stands behind the last column.
func (s *Screen) eraseLine(how int, erase func(y, lo, hi int)) {
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
