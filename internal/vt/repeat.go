package vt

import "github.com/tapedeck-dev/tapedeck/internal/grapheme"

// repeat is REP: the character before it once more, n times, at most a screenful, and between left and right margins to the
// end of the row. It fills whole rows at once and scrolls as far as
// it will need at once, for a few bytes can ask for all of a large screen again and again.
func (s *Screen) repeat(n int) {
	r, o := s.lastRune, Origin{s.lastFrom, s.lastTo}
	if r == 0 {
		return
	}
	w := grapheme.Width(r)
	n = min(n, max(1, s.rows*s.cols/w))
	s.cluster = afterASCII
	if _, boundary := grapheme.Next(afterASCII, r); !boundary && grapheme.JoinsCell(afterASCII, r) {
		for range min(n, MaxCluster) { // a cell takes no more
			s.cluster = afterASCII
			s.print(r, o.Start, o.End)
		}
		s.forget()
		return
	}
	if !s.autowrap {
		n = min(n, s.cols+2) // the last column again changes nothing
	}
	if s.left > 0 || s.right < s.cols-1 {
		n = min(n, max(1, (s.edge()-s.x)/w)) // such a row cannot be filled at once
	}
	a := s.cols / w // in a row
	for n > 0 && w <= s.cols {
		if !s.pending && s.x+w > s.edge() && s.autowrap {
			s.erase(s.y, s.x, s.edge())
			s.pending = true
		}
		if s.pending && s.autowrap {
			s.wrapAhead((n + a - 1) / a)
		}
		n -= s.run(r, w, n, o)
	}
	s.forget()
}

// wrapAhead is wrap before characters that fill so many rows: those are scrolled in together.
func (s *Screen) wrapAhead(rows int) {
	x := s.lineStart()
	if s.y != s.bottom || x < s.left || x > s.right {
		s.wrap()
		return
	}
	rows = min(rows, s.bottom-s.top+1)
	l := s.buf.rows[s.y]
	l.wrapped = true
	s.touch(l)
	s.x, s.pending = x, false
	s.feedLines(rows)
	s.y = s.bottom - rows + 1
}

// run prints a character of w columns as often as there is room in the row, at most n times, and returns how often.
func (s *Screen) run(r rune, w, n int, o Origin) int {
	edge := s.edge()
	k := min(n, (edge-s.x)/w)
	if s.pending || k < 1 {
		s.place(r, w, o.Start, o.End)
		return 1
	}
	l, ch := s.buf.rows[s.y], uint32(r)
	if w == 2 {
		ch |= isWide
	}
	switch left := s.cols - k*w; {
	case left == 0 && s.x == 0, left == 1 && s.x == 0 && w == 2 && n > k && s.autowrap && edge == s.cols:
		l.fill(cell{}, o)
		if left > 0 {
			l.tail = cell{st: s.erased()} // what wrapping leaves there
		}
		l.of = cell{ch, s.style(&s.pen)}
		l.wrapped = l.wrapped && !s.insert
	default:
		if s.insert {
			s.insertCells(k * w)
		}
		s.spread(l.solid(), cell{ch, s.style(&s.pen)}, s.x, s.x+k*w, o)
	}
	s.touch(l)
	s.x += k * w
	if s.x+w > edge && (s.x == edge || n > k && s.autowrap && edge == s.cols && l.uniform) {
		s.x, s.pending = edge-1, true
	}
	return k
}

// spread prints a character into the cells from lo to before hi.
func (s *Screen) spread(l *line, c cell, lo, hi int, o Origin) {
	l.split(lo)
	l.split(hi)
	for x := lo; x < hi; x++ {
		l.cells[x] = c
		if c.ch&isWide != 0 {
			x++
			l.cells[x] = cell{filler, c.st}
		}
	}
	if l.orig != nil {
		for x := lo; x < hi; x++ {
			l.orig[x] = o
		}
	}
	l.used = max(l.used, hi)
	s.drawn += hi - lo
}
