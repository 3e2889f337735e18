package vt

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
