package vt

// A spot is a place that moves with the text, in rows of the screen; within a resize in lines of the scrollback and the screen.
type spot struct {
	y, x    int
	pending bool
	was     int // within rewrap: the line before, within it the row of the line
	at      int // the column after
}

// resizeBuffer resizes a buffer. The first spot is the one that stays on the screen.
func (s *grid) resizeBuffer(b *buffer, rows, cols int, spots []*spot) {
	base := b.hist.n
	lines := append(b.hist.take(), b.rows...)
	for _, l := range lines {
		l.solid()
	}
	if spots[0] == spots[1] {
		spots = spots[:1]
	}
	for _, p := range spots {
		p.y += base
	}
	cursor := spots[0]
	was, wasRows := s.cols, len(b.rows)
	s.cols = cols // of new lines
	for n := wasRows; n > rows; n-- {
		if len(lines) > cursor.y+1 {
			lines = lines[:len(lines)-1]
		} else {
			base++
		}
	}
	for n := wasRows; n < rows; n++ {
		if base > 0 && len(lines) <= cursor.y+1 {
			base--
		} else {
			lines = append(lines, s.newLine())
		}
	}
	if cols != was {
		lines, base = s.refit(b, lines, base, cols, rows, spots)
	}
	s.cols = was
	for _, l := range lines[:base] {
		b.hist.push(l)
	}
	b.setRows(lines[base:])
	for _, p := range spots {
		p.y = min(max(p.y-base, 0), rows-1)
	}
}

// refit gives lines another width, wrapping those of the primary screen anew.
func (s *grid) refit(b *buffer, lines []*line, base, cols, rows int, spots []*spot) ([]*line, int) {
	if b == &s.alternate {
		for _, l := range lines {
			l.resize(cols, s.o.Origins)
			s.touch(l)
		}
		for _, p := range spots {
			p.clip(cols)
		}
		return lines, base
	}
	lines = s.rewrap(lines, cols, spots)
	cursor := spots[0]
	for len(lines) < base+rows { // lines were joined
		if base > 0 {
			base--
		} else {
			lines = append(lines, s.newLine())
		}
	}
	for len(lines) > base+rows { // lines were parted
		below := len(lines) > cursor.y+1
		if below && (cursor.y <= base || base == 0 && lines[len(lines)-1].used == 0) {
			lines = lines[:len(lines)-1]
		} else {
			base++
		}
	}
	return lines, base
}

// clip keeps a spot within its line.
func (p *spot) clip(cols int) {
	if p.pending && p.x+1 < cols {
		p.x, p.pending = p.x+1, false
	}
	if p.x >= cols {
		p.x, p.pending = cols-1, false
	}
}

// rewrap gives every line another width: lines that go on in the next one become one, which is wrapped anew.
func (s *grid) rewrap(lines []*line, cols int, spots []*spot) []*line {
	for _, p := range spots {
		p.was = p.y
	}
	out := make([]*line, 0, len(lines))
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n-1].wrapped {
			n++
		}
		var here []*spot
		for _, p := range spots {
			if p.was >= i && p.was < i+n {
				p.was -= i
				here = append(here, p)
			}
		}
		out = s.rewrapOne(out, lines[i:i+n], cols, here)
		for _, p := range here {
			p.was = -1
		}
		i += n
	}
	return out
}

// rewrapOne appends one line, of which parts are the rows; spots are those on it.
func (s *grid) rewrapOne(out, parts []*line, cols int, spots []*spot) []*line {
	if len(parts) == 1 && parts[0].used <= cols {
		parts[0].resize(cols, s.o.Origins)
		parts[0].wrapped = false
		s.touch(parts[0])
		for _, p := range spots {
			p.y = len(out)
			p.clip(cols)
		}
		return append(out, parts[0])
	}
	whole := s.joinLines(parts, spots)
	for from := 0; ; {
		to := min(from+cols, len(whole.cells))
		if to < len(whole.cells) && whole.cells[to].ch == filler {
			if to--; to == from { // a wide character in a single column
				to++
				whole.cells[from].ch, whole.cells[to].ch = 0, 0
			}
		}
		l := s.newLine()
		copy(l.cells, whole.cells[from:to])
		if l.orig != nil {
			copy(l.orig, whole.orig[from:to])
		}
		l.used = to - from
		l.wrapped = to < len(whole.cells)
		for _, p := range spots {
			if p.x >= from && (p.x < to || !l.wrapped) {
				p.land(len(out), p.x-from, cols)
			}
		}
		out = append(out, l)
		if from = to; !l.wrapped {
			for _, p := range spots {
				p.x = p.at
			}
			return out
		}
	}
}

// land puts a spot down on a line, x columns from its beginning; x may be behind the last column.
func (p *spot) land(y, x, cols int) {
	p.y, p.pending = y, x == cols
	p.at = min(x, cols-1)
}

// joinLines puts the rows of one line together, without the blanks at its end. The spots get their distance from its beginning.
func (s *grid) joinLines(parts []*line, spots []*spot) *line {
	whole := new(line)
	for i, l := range parts {
		end := len(l.cells)
		if i == len(parts)-1 {
			for end = l.used; end > 0 && l.cells[end-1].ch == 0; end-- {
			}
		} else if l.cells[end-1].ch == 0 && parts[i+1].cells[0].ch&isWide != 0 {
			end-- // the wide one did not fit
		}
		for _, p := range spots {
			if p.was == i {
				if p.pending {
					p.x++
				}
				p.x += len(whole.cells)
			}
		}
		whole.cells = append(whole.cells, l.cells[:end]...)
		if l.orig != nil {
			whole.orig = append(whole.orig, l.orig[:end]...)
		}
	}
	return whole
}
