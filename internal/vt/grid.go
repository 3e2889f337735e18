package vt

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A grid is the cells of a screen and the lines above them, and the pen that erases them.
type grid struct {
	o    Options
	rows int
	cols int

	primary   buffer
	alternate buffer
	buf       *buffer // one of the two
	gen       uint64
	scrolled  uint64  // lines that went above the primary screen
	spare     []*line // memory of scrollUp and scrollDown
	scratch   []byte  // memory of textOf

	top, bottom int // margins, both within
	left, right int // of DECSLRM; the whole width without DECLRMM
	lrmm        bool
	pen         pen

	pens     penTable
	clusters stringTable
	links    stringTable
	penOf    pen // whose index penID is
	penID    uint32
	stale    bool // penID is of another table
	protects bool // something may be protected from selective erasing
	drawn    int  // cells that were repeated or given their places: the work of tests
}

// open gives a buffer its rows, where it has none yet.
func (s *grid) open(b *buffer) {
	if b.rows != nil {
		return
	}
	lines := make([]*line, s.rows)
	for i := range lines {
		lines[i] = s.newLine()
	}
	b.setRows(lines)
}

// margins sets all of them to the edges of the screen.
func (s *grid) margins() {
	s.top, s.bottom, s.left, s.right = 0, s.rows-1, 0, s.cols-1
}

// Size is the number of rows and columns.
func (s *grid) Size() (rows, cols int) { return s.rows, s.cols }

// Alt reports whether the alternate screen is shown.
func (s *grid) Alt() bool { return s.buf == &s.alternate }

// Generation is another number whenever a row of the screen may be another.
func (s *grid) Generation() uint64 { return s.gen }

// Changed is another number whenever row i may be another.
func (s *grid) Changed(i int) uint64 {
	if l := s.line(i); l != nil {
		return l.gen
	}
	return 0
}

// line is row i, or nil.
func (s *grid) line(i int) *line {
	if i < 0 || i >= s.rows {
		return nil
	}
	return s.buf.rows[i]
}

// Row is the text of row i, without trailing blanks; a wide character stands once.
func (s *grid) Row(i int) string { return s.textOf(s.line(i)) }

// Text is the text of every row.
func (s *grid) Text() []string {
	rows := make([]string, s.rows)
	for i := range rows {
		rows[i] = s.Row(i)
	}
	return rows
}

// Wrapped reports whether row i goes on in the next row.
func (s *grid) Wrapped(i int) bool {
	l := s.line(i)
	return l != nil && l.wrapped
}

// ScrollbackLen is how many lines are kept above the primary screen.
func (s *grid) ScrollbackLen() int { return s.primary.hist.n }

// Scrolled is how many lines were scrolled off the top of the primary screen since it was made, kept or not.
func (s *grid) Scrolled() uint64 { return s.scrolled }

// ScrollbackRow is the text of a line above the screen; 0 is the oldest.
func (s *grid) ScrollbackRow(i int) string { return s.textOf(s.above(i)) }

// ScrollbackWrapped reports whether a line above the screen goes on in the next one.
func (s *grid) ScrollbackWrapped(i int) bool {
	l := s.above(i)
	return l != nil && l.wrapped
}

func (s *grid) above(i int) *line {
	if i < 0 || i >= s.primary.hist.n {
		return nil
	}
	return s.primary.hist.at(i)
}

// Origin is where in the stream the text of a cell stood, with Options.Origins. The filler of a wide character has its origin.
func (s *grid) Origin(row, col int) Origin { return s.line(row).origin(col) }

// Cell is a place of the screen.
func (s *grid) Cell(row, col int) Cell {
	l := s.line(row)
	if l == nil || col < 0 || col >= s.cols {
		return Cell{Width: 1}
	}
	return s.public(l.solid().cells[col])
}

// AppendCells appends every cell of a row to dst.
func (s *grid) AppendCells(dst []Cell, row int) []Cell {
	if l := s.line(row); l != nil {
		for _, c := range l.solid().cells {
			dst = append(dst, s.public(c))
		}
	}
	return dst
}

func (s *grid) public(c cell) Cell {
	p := &s.pens.list[c.st]
	out := Cell{Style: p.style(), Link: linkURI(s.links.list[p.link()]), Width: 1}
	switch {
	case c.ch == filler:
		out.Width = 0
		return out
	case c.ch&isWide != 0:
		out.Width = 2
	}
	out.Text = s.textIn(c.ch)
	return out
}

func (s *grid) textIn(ch uint32) string {
	switch v := ch & chMask; {
	case ch&isCluster != 0:
		return s.clusters.list[v]
	case v == 0:
		return ""
	case v < 0x80:
		return asciiText[v : v+1]
	default:
		return string(rune(v))
	}
}

func (s *grid) textOf(l *line) string {
	if l == nil {
		return ""
	}
	if l.textGen == l.gen {
		return l.text
	}
	l.solid()
	b := s.scratch[:0]
	end := 0
	for _, c := range l.cells[:l.used] {
		switch v := c.ch & chMask; {
		case c.ch == filler:
			continue
		case c.ch&isCluster != 0:
			b = append(b, s.clusters.list[v]...)
		case v == 0:
			b = append(b, ' ')
			continue
		default:
			b = utf8.AppendRune(b, rune(v))
		}
		if c.ch != ' ' {
			end = len(b)
		}
	}
	s.scratch = b
	l.text, l.textGen = string(b[:end]), l.gen
	return l.text
}

func (l *line) origin(col int) Origin {
	if l == nil || l.orig == nil || col < 0 || col >= len(l.orig) {
		return Origin{}
	}
	return l.solid().orig[col]
}

var asciiText = func() string {
	var b strings.Builder
	for c := range byte(0x80) {
		b.WriteByte(c)
	}
	return b.String()
}()

// leastInterned is how many values a table holds before any are dropped. Tests lower it.
var leastInterned = 1 << 14

// limitOf is how many values a table may hold of which n were in use at the last look.
func limitOf(n int) int { return max(leastInterned, 4*n) }

// penTable holds pens, which cells name by their index. Index 0 is the zero pen.
type penTable struct {
	list  []pen
	slots []uint32 // index + 1 of the pen, in the first free place from its hash on
	limit int
}

func newPenTable() penTable {
	return penTable{list: []pen{{}}, slots: make([]uint32, 64), limit: leastInterned}
}

func (p *pen) hash() uint64 {
	small := uint64(p.attr)<<16 | uint64(p.under)<<8
	if p.protect {
		small |= 1
	}
	h, l := bits.Mul64(p.colors^0x9e3779b97f4a7c15, small^p.more^0xd6e8feb86659fd93)
	return (h ^ l ^ p.colors>>32 ^ p.more) * 0x9e3779b97f4a7c15
}

func (t *penTable) put(p pen) uint32 {
	if p == (pen{}) {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	at := p.hash() >> 32 & mask
	for ; t.slots[at] != 0; at = (at + 1) & mask {
		if i := t.slots[at] - 1; t.list[i] == p {
			return i
		}
	}
	t.list = append(t.list, p)
	t.slots[at] = uint32(len(t.list))
	if 2*len(t.list) > len(t.slots) {
		t.grow(2 * len(t.slots))
	}
	return uint32(len(t.list) - 1)
}

func (t *penTable) grow(n int) {
	t.slots = make([]uint32, n)
	mask := uint64(n - 1)
	for i := 1; i < len(t.list); i++ {
		at := t.list[i].hash() >> 32 & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(i + 1)
	}
}

func (t *penTable) full() bool { return len(t.list) >= t.limit }

// keep drops every pen but the marked ones and returns their new indices.
func (t *penTable) keep(marked []bool) []uint32 {
	to := make([]uint32, len(t.list))
	kept := t.list[:1]
	for i := 1; i < len(t.list); i++ {
		if marked[i] {
			to[i] = uint32(len(kept))
			kept = append(kept, t.list[i])
		}
	}
	t.list, t.limit = kept, limitOf(len(kept))
	size := 64
	for size < 2*len(kept) {
		size *= 2
	}
	t.grow(size)
	return to
}

// stringTable holds strings in the same way. Index 0 is the empty string.
type stringTable struct {
	list  []string
	index map[string]uint32
	limit int
}

func newStringTable() stringTable {
	return stringTable{list: []string{""}, index: map[string]uint32{}, limit: leastInterned}
}

func (t *stringTable) put(b []byte) uint32 {
	if i, ok := t.index[string(b)]; ok {
		return i
	}
	v := string(b)
	i := uint32(len(t.list))
	t.list = append(t.list, v)
	t.index[v] = i
	return i
}

func (t *stringTable) full() bool { return len(t.list) >= t.limit }

func (t *stringTable) keep(marked []bool) []uint32 {
	to := make([]uint32, len(t.list))
	next := newStringTable()
	for i := 1; i < len(t.list); i++ {
		if marked[i] {
			to[i] = uint32(len(next.list))
			next.index[t.list[i]] = to[i]
			next.list = append(next.list, t.list[i])
		}
	}
	next.limit = limitOf(len(next.list))
	*t = next
	return to
}

// collect drops the pens, clusters and links that nothing names, where one of them is full.
func (s *grid) collect() {
	if !s.pens.full() && !s.clusters.full() && !s.links.full() {
		return
	}
	pens, clusters := make([]bool, len(s.pens.list)), make([]bool, len(s.clusters.list))
	s.eachCell(func(c *cell) {
		pens[c.st] = true
		if c.ch&isCluster != 0 {
			clusters[c.ch&chMask] = true
		}
	})
	links := make([]bool, len(s.links.list))
	for i, p := range s.pens.list {
		if pens[i] {
			links[p.link()] = true
		}
	}
	s.eachPen(func(p *pen) { links[p.link()] = true })
	toLink := s.links.keep(links)
	for i := range s.pens.list {
		p := &s.pens.list[i]
		p.setLink(toLink[p.link()])
	}
	s.eachPen(func(p *pen) { p.setLink(toLink[p.link()]) })
	toPen, toCluster := s.pens.keep(pens), s.clusters.keep(clusters)
	s.eachCell(func(c *cell) {
		c.st = toPen[c.st]
		if c.ch&isCluster != 0 {
			c.ch = c.ch&^chMask | toCluster[c.ch&chMask]
		}
	})
	s.stale = true
}

func (s *grid) eachCell(f func(*cell)) {
	for _, b := range []*buffer{&s.primary, &s.alternate} {
		for _, l := range b.rows {
			l.each(f)
		}
		for i := range b.hist.n {
			l := b.hist.at(i)
			l.each(f)
		}
	}
}

func (s *grid) eachPen(f func(*pen)) {
	f(&s.pen)
	f(&s.primary.saved.pen)
	f(&s.alternate.saved.pen)
}
