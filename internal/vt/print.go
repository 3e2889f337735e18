package vt

import (
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// afterASCII is the state of clusters behind a printable character of ASCII.
var afterASCII, _ = grapheme.Next(grapheme.State{}, 'a')

// forget ends the cluster that was printed last: what comes next stands for itself.
func (s *cursor) forget() {
	s.cluster, s.lastRune = grapheme.State{}, 0
}

// text prints a run of printable ASCII.
func (s *cursor) text(p []byte, at int64) {
	if s.sets != (charsets{}) || s.insert {
		for i, c := range p {
			s.char(rune(c), p[i:i+1], at+int64(i))
		}
		return
	}
	s.lastRune, s.lastFrom, s.lastTo = rune(p[len(p)-1]), at+int64(len(p))-1, at+int64(len(p))
	st := s.style(&s.pen)
	for len(p) > 0 {
		if s.pending && s.autowrap {
			s.wrap()
			st = s.style(&s.pen) // the new line may have moved it
		}
		edge := s.edge()
		n := min(len(p), edge-s.x)
		l := s.row(s.y)
		s.put(l, p[:n], at, st)
		s.x += n
		s.pending = false
		if s.x == edge {
			s.x, s.pending = edge-1, true
		}
		p, at = p[n:], at+int64(n)
	}
	s.cluster = afterASCII
}

// put writes ASCII into one line at the cursor; there is room.
func (s *cursor) put(l *line, p []byte, at int64, st uint32) {
	n := len(p)
	l.split(s.x)
	l.split(s.x + n)
	cells := l.cells[s.x : s.x+n]
	for i, c := range p {
		cells[i] = cell{uint32(c), st}
	}
	if l.orig != nil {
		for i := range p {
			l.orig[s.x+i] = Origin{at + int64(i), at + int64(i) + 1}
		}
	}
	l.used = max(l.used, s.x+n)
	s.touch(l)
}

// before is the column of the cell before the cursor.
func (s *cursor) before() int {
	x := s.x - 1
	if s.pending {
		x = s.x
	}
	if x > 0 && s.row(s.y).cells[x].ch == filler {
		x--
	}
	return x
}

// edge is the column behind the last one that is printed in before the line wraps.
func (s *cursor) edge() int {
	if s.x <= s.right {
		return s.right + 1
	}
	return s.cols
}

// wrap goes on in the next line.
func (s *cursor) wrap() {
	l := s.buf.rows[s.y]
	if !l.wrapped {
		l.wrapped = true
		s.touch(l)
	}
	s.pending = false
	s.x = s.lineStart()
	s.down()
}

// lineStart is the column that a carriage return goes to.
func (s *cursor) lineStart() int {
	if s.x >= s.left || s.origin {
		return s.left
	}
	return 0
}

// char prints a code point.
func (s *cursor) char(r rune, raw []byte, at int64) {
	s.print(s.sets.translate(r), at, at+int64(len(raw)))
}

// chars prints a run of code points of three bytes: those of two columns straight into the line, as long as there is room.
func (s *cursor) chars(p []byte, at int64) int {
	r := rune3(p)
	if plainWidth(r) != 2 || s.sets != (charsets{}) || s.insert || s.pending || s.x+2 >= s.edge() {
		s.char(r, p[:3], at)
		return 3
	}
	st, edge := s.style(&s.pen), s.edge()
	l, n, from := s.row(s.y), 0, s.x
	l.split(from)
	for ; s.x+2 < edge && plainWidth(r) == 2; r = rune3(p[n:]) {
		s.lastRune = r
		if l.cells[s.x+1].ch&isWide != 0 {
			l.split(s.x + 2)
		}
		l.cells[s.x], l.cells[s.x+1] = cell{uint32(r) | isWide, st}, cell{filler, st}
		if l.orig != nil {
			o := Origin{at + int64(n), at + int64(n) + 3}
			l.orig[s.x], l.orig[s.x+1] = o, o
		}
		s.x += 2
		n += 3
	}
	s.lastFrom, s.lastTo = at+int64(n)-3, at+int64(n)
	l.used = max(l.used, s.x)
	s.touch(l)
	s.cluster = afterASCII
	return n
}

func (s *cursor) print(r rune, from, to int64) {
	if w := plainWidth(r); w > 0 {
		s.cluster = afterASCII
		s.place(r, w, from, to)
		return
	}
	next, boundary := grapheme.Next(s.cluster, r)
	w := grapheme.Width(r)
	if w == 0 || !boundary && grapheme.JoinsCell(s.cluster, r) {
		s.cluster = next
		s.join(r, w, to)
		return
	}
	s.cluster = next
	s.place(r, w, from, to)
}

// plainWidth is how many columns a code point takes of the most frequent ranges that are no part of a cluster with what stands
// before; of others it is 0.
func plainWidth(r rune) int {
	switch {
	case r < 0x7f:
		if r >= 0x20 {
			return 1
		}
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3041 && r <= 0x3096, r >= 0x30a1 && r <= 0x30fa, r >= 0x3400 && r <= 0x4dbf,
		r >= 0xff01 && r <= 0xff60:
		return 2
	case r >= 0xc0 && r <= 0x2ff, r >= 0x400 && r <= 0x482, r >= 0x2500 && r <= 0x259f:
		return 1
	}
	return 0
}

// place prints a code point in cells of its own.
func (s *cursor) place(r rune, w int, from, to int64) {
	s.lastRune, s.lastFrom, s.lastTo = r, from, to
	if w > s.cols {
		return
	}
	if s.pending && s.autowrap {
		s.wrap()
	}
	s.pending = false
	edge := s.edge()
	if s.x+w > edge {
		if !s.autowrap || edge-w < 0 {
			return // a wide character does not fit into the last column
		}
		s.erase(s.y, s.x, edge)
		s.wrap()
		if edge = s.edge(); s.x+w > edge {
			return
		}
	}
	if s.insert {
		s.insertCells(w)
	}
	l := s.row(s.y)
	l.split(s.x)
	l.split(s.x + w)
	st := s.style(&s.pen)
	l.cells[s.x] = cell{uint32(r), st}
	if w == 2 {
		l.cells[s.x].ch |= isWide
		l.cells[s.x+1] = cell{filler, st}
	}
	if l.orig != nil {
		for i := range w {
			l.orig[s.x+i] = Origin{from, to}
		}
	}
	l.used = max(l.used, s.x+w)
	s.touch(l)
	s.x += w
	if s.x >= edge {
		s.x, s.pending = edge-1, true
	}
}

// join adds a code point to the character before the cursor.
func (s *cursor) join(r rune, w int, to int64) {
	x := s.before()
	if x < 0 {
		return
	}
	l := s.row(s.y)
	c := &l.cells[x]
	if c.ch == 0 {
		return
	}
	text := s.textIn(c.ch)
	if len(text)+utf8.RuneLen(r) > MaxCluster {
		return
	}
	if s.clusters.full() {
		s.collect() // text stays
	}
	base, _ := utf8.DecodeRuneInString(text)
	s.scratch = utf8.AppendRune(append(s.scratch[:0], text...), r)
	c.ch = c.ch&isWide | isCluster | s.clusters.put(s.scratch)
	if c.ch&isWide == 0 && (w == 2 || flag(r) || s.emojiWide && r == 0xfe0f && grapheme.VariationWide(base)) {
		s.widen(l, x)
	}
	if l.orig != nil && l.orig[x].End > 0 {
		l.orig[x].End = max(to, l.orig[x].End)
		if c.ch&isWide != 0 {
			l.orig[x+1] = l.orig[x]
		}
	}
	s.touch(l)
}

// flag reports whether a code point is half a flag: the second half makes the character before it one of two columns.
func flag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// widen gives the character at column x, which stands before the cursor, a second column. At the edge it stays as it is.
func (s *cursor) widen(l *line, x int) {
	if s.pending || s.x != x+1 {
		return
	}
	l.split(s.x + 1)
	l.cells[x].ch |= isWide
	l.cells[s.x] = cell{filler, l.cells[x].st}
	if l.orig != nil {
		l.orig[s.x] = l.orig[x]
	}
	l.used = max(l.used, s.x+1)
	edge := s.edge()
	s.x++
	if s.x >= edge {
		s.x, s.pending = edge-1, true
	}
}

// repeat is REP: the character before it once more, n times, at most a screenful, and between left and right margins to the
// end of the row. It fills whole rows at once and scrolls as far as
// it will need at once, for a few bytes can ask for all of a large screen again and again.
func (s *cursor) repeat(n int) {
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
func (s *cursor) wrapAhead(rows int) {
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
func (s *cursor) run(r rune, w, n int, o Origin) int {
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
func (s *cursor) spread(l *line, c cell, lo, hi int, o Origin) {
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

// FirstCluster is what the first cell of a text would hold, with the columns that it takes where mode 2027 is off. Of an empty text it is empty.
func FirstCluster(text string) (cluster string, width int) {
	var st grapheme.State
	for i, r := range text {
		next, boundary := grapheme.Next(st, r)
		w := grapheme.Width(r)
		if i > 0 && w > 0 && (boundary || !grapheme.JoinsCell(st, r)) {
			return text[:i], width
		}
		width = max(width, w)
		if i > 0 && flag(r) {
			width = 2
		}
		st = next
	}
	return text, width
}

// StringWidth is how many columns a text takes in one line. Control characters take none.
func StringWidth(text string) int {
	total := 0
	for text != "" {
		if c := text[0]; c >= 0x20 && c < 0x7f && (len(text) == 1 || text[1] < utf8.RuneSelf) {
			total++
			text = text[1:]
			continue
		}
		cluster, w := FirstCluster(text)
		total += w
		text = text[len(cluster):]
	}
	return total
}
