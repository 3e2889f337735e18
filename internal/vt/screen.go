package vt

import (
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// A Screen is a terminal's screen. It is for one goroutine.
type Screen struct {
	o    Options
	m    machine
	rows int
	cols int

	primary   buffer
	alternate buffer
	buf       *buffer // one of the two
	gen       uint64
	scrolled  uint64  // lines that went above the primary screen
	spare     []*line // memory of scrollUp and scrollDown
	scratch   []byte  // memory of textOf

	x, y        int
	pending     bool // the last column was written
	top, bottom int  // margins, both within
	left, right int  // of DECSLRM; the whole width without DECLRMM
	pen         pen
	sets        charsets
	tabs        tabStops

	pens     penTable
	clusters stringTable
	links    stringTable
	penOf    pen // whose index penID is
	penID    uint32
	stale    bool // penID is of another table

	cluster   grapheme.State // what was printed last, where nothing came between
	lastRune  rune           // of REP; 0 where there is none
	lastFrom  int64          // where it stands in the stream
	lastTo    int64
	protects  bool // something may be protected from selective erasing
	emojiWide bool // mode 2027
	drawn     int  // cells that were repeated or given their places: the work of tests

	autowrap, insert, origin, newline, lrmm, visible bool
	modes                                            modes
	shape                                            int
	title, icon                                      string
	titles                                           []string // of XTWINOPS 22
	palette                                          palette
	kitty                                            [2]kittyFlags // primary, alternate
}

// New returns an empty screen.
func New(o *Options) *Screen {
	s := new(Screen)
	if o != nil {
		s.o = *o
	}
	s.rows, s.cols = s.o.Rows, s.o.Cols
	if s.rows <= 0 {
		s.rows = 24
	}
	if s.cols <= 0 {
		s.cols = 80
	}
	s.rows, s.cols = capped(s.rows, s.cols)
	s.pens, s.clusters, s.links = newPenTable(), newStringTable(), newStringTable()
	s.open(&s.primary)
	s.reset()
	return s
}

// capped is a size that a screen can have.
func capped(rows, cols int) (int, int) {
	cols = min(cols, MaxSize)
	return min(rows, MaxSize, MaxCells/cols), cols
}

// open gives a buffer its rows, where it has none yet.
func (s *Screen) open(b *buffer) {
	if b.rows != nil {
		return
	}
	lines := make([]*line, s.rows)
	for i := range lines {
		lines[i] = s.newLine()
	}
	b.setRows(lines)
}

// reset is RIS.
func (s *Screen) reset() {
	s.pen = pen{}
	for _, b := range []*buffer{&s.primary, &s.alternate} {
		b.saved = saved{}
		b.hist.clear()
		for _, l := range b.rows {
			s.blank(l, 0)
		}
	}
	s.primary.hist.max = max(s.o.Scrollback, 0)
	if s.o.Scrollback == 0 {
		s.primary.hist.max = DefaultScrollback
	}
	s.buf = &s.primary
	s.tabs = newTabStops(s.cols)
	s.palette = palette{}
	s.title, s.icon, s.titles = "", "", nil
	s.kitty = [2]kittyFlags{}
	s.modes = newModes()
	s.soft()
	s.autowrap, s.newline, s.emojiWide = true, false, false
	s.x, s.y, s.pending = 0, 0, false
	s.forget()
}

// soft is DECSTR.
func (s *Screen) soft() {
	s.pen = pen{}
	s.sets = charsets{}
	s.insert, s.origin, s.lrmm, s.visible = false, false, false, true
	s.autowrap = true
	s.shape = 0
	s.margins()
	s.buf.saved = saved{}
	s.modes.soft()
}

// margins sets all of them to the edges of the screen.
func (s *Screen) margins() {
	s.top, s.bottom, s.left, s.right = 0, s.rows-1, 0, s.cols-1
}

// Write reads the next bytes that the program wrote. It does not fail.
func (s *Screen) Write(p []byte) (int, error) {
	s.m.feed(p, s)
	return len(p), nil
}

// Size is the number of rows and columns.
func (s *Screen) Size() (rows, cols int) { return s.rows, s.cols }

// Cursor is where the next character goes.
func (s *Screen) Cursor() Cursor {
	return Cursor{Row: s.y, Col: s.x, Visible: s.visible, Pending: s.pending, Shape: s.shape}
}

// Title is the window's title.
func (s *Screen) Title() string { return s.title }

// Alt reports whether the alternate screen is shown.
func (s *Screen) Alt() bool { return s.buf == &s.alternate }

// Ground reports whether the stream is between sequences and code points.
func (s *Screen) Ground() bool { return s.m.ground() }

// Offset is how many bytes were written.
func (s *Screen) Offset() int64 { return s.m.pos }

// Generation is another number whenever a row of the screen may be another.
func (s *Screen) Generation() uint64 { return s.gen }

// Changed is another number whenever row i may be another.
func (s *Screen) Changed(i int) uint64 {
	if l := s.line(i); l != nil {
		return l.gen
	}
	return 0
}

// line is row i, or nil.
func (s *Screen) line(i int) *line {
	if i < 0 || i >= s.rows {
		return nil
	}
	return s.buf.rows[i]
}

// Row is the text of row i, without trailing blanks; a wide character stands once.
func (s *Screen) Row(i int) string { return s.textOf(s.line(i)) }

// Text is the text of every row.
func (s *Screen) Text() []string {
	rows := make([]string, s.rows)
	for i := range rows {
		rows[i] = s.Row(i)
	}
	return rows
}

// Wrapped reports whether row i goes on in the next row.
func (s *Screen) Wrapped(i int) bool {
	l := s.line(i)
	return l != nil && l.wrapped
}

// ScrollbackLen is how many lines are kept above the primary screen.
func (s *Screen) ScrollbackLen() int { return s.primary.hist.n }

// Scrolled is how many lines were scrolled off the top of the primary screen since it was made, kept or not.
func (s *Screen) Scrolled() uint64 { return s.scrolled }

// ScrollbackRow is the text of a line above the screen; 0 is the oldest.
func (s *Screen) ScrollbackRow(i int) string { return s.textOf(s.above(i)) }

// ScrollbackWrapped reports whether a line above the screen goes on in the next one.
func (s *Screen) ScrollbackWrapped(i int) bool {
	l := s.above(i)
	return l != nil && l.wrapped
}

func (s *Screen) above(i int) *line {
	if i < 0 || i >= s.primary.hist.n {
		return nil
	}
	return s.primary.hist.at(i)
}

// Origin is where in the stream the text of a cell stood, with Options.Origins. The filler of a wide character has its origin.
func (s *Screen) Origin(row, col int) Origin { return s.line(row).origin(col) }

func (l *line) origin(col int) Origin {
	if l == nil || l.orig == nil || col < 0 || col >= len(l.orig) {
		return Origin{}
	}
	return l.solid().orig[col]
}

// Cell is a place of the screen.
func (s *Screen) Cell(row, col int) Cell {
	l := s.line(row)
	if l == nil || col < 0 || col >= s.cols {
		return Cell{Width: 1}
	}
	return s.public(l.solid().cells[col])
}

// AppendCells appends every cell of a row to dst.
func (s *Screen) AppendCells(dst []Cell, row int) []Cell {
	if l := s.line(row); l != nil {
		for _, c := range l.solid().cells {
			dst = append(dst, s.public(c))
		}
	}
	return dst
}

func (s *Screen) public(c cell) Cell {
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

func (s *Screen) textIn(ch uint32) string {
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

var asciiText = func() string {
	var b strings.Builder
	for c := range byte(0x80) {
		b.WriteByte(c)
	}
	return b.String()
}()

func (s *Screen) textOf(l *line) string {
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
