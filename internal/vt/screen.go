package vt

import (
	"strconv"
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

// Name is the emulator's name in a recording.
const Name = "tapedeck-vt"

// Version is raised with every change after which equal bytes may give another screen.
const Version = 2

// Pin is what a recording says of this emulator: its name, and all that its screens depend on.
func Pin() (name, version string) {
	return Name, strconv.Itoa(Version) + " unicode-" + grapheme.Version + " clusters-uax29-vs16-2027"
}

// Limits of what one sequence may hold, in bytes.
const (
	MaxString  = 1 << 20 // of a control string: OSC, DCS, APC; the rest is read past
	MaxCluster = 128     // of a cell's text; what comes after it is dropped
)

// DefaultScrollback is how many lines above the screen are kept where Options does not say.
const DefaultScrollback = 1000

// Options say what kind of terminal a Screen is. Nil and zero work.
type Options struct {
	Rows, Cols int // 0 is 24 and 80; capped to MaxSize and MaxCells
	// Scrollback is how many lines above the screen are kept; 0 is DefaultScrollback, below 0 none.
	Scrollback int
	// Reply is given what the terminal answers to queries, whole answers, in order. It must not block or call the Screen. Nil
	// drops them.
	Reply func([]byte)
	// Event is told of what leaves no trace on the screen. It must not block or call the Screen. Nil drops them.
	Event func(Event)
	// Origins has each cell remember the bytes that drew it: see Screen.Origin. It costs memory and time.
	Origins bool
}

// MaxSize is the most rows, and the most columns, that a Screen has. MaxCells is the most cells: rows beyond it are not there.
const (
	MaxSize  = 4096
	MaxCells = 1 << 18
)

// An Event is something that a program told its terminal and that is not on the screen.
type Event struct {
	Kind EventKind
	Text string // the title, the clipboard's content (decoded)
}

// EventKind says what an Event is.
type EventKind uint8

// The kinds of Event.
const (
	EventBell      EventKind = iota + 1
	EventTitle               // OSC 0, 2
	EventClipboard           // OSC 52, set
)

// A Cursor is where the next character goes.
type Cursor struct {
	Row, Col int
	Visible  bool
	// Pending says that the last column was written and the next character wraps first. Col is the last column then.
	Pending bool
	Shape   int // of DECSCUSR; 0 is the default
}

// A Color is a colour of a cell: the default one, one of the palette, or 24 bits.
type Color uint32

// The kinds of Color stand in the upper byte.
const (
	ColorDefault Color = 0
	ColorIndexed Color = 1 << 24 // | 0…255
	ColorRGB     Color = 2 << 24 // | r<<16 | g<<8 | b
)

// An Attr is a set of what SGR turns on.
type Attr uint16

// The attributes.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Blink
	Reverse
	Hidden
	Strike
	Overline
)

// An Underline is a style of underline (SGR 4:n).
type Underline uint8

// The styles of underline.
const (
	NoUnderline Underline = iota
	SingleUnderline
	DoubleUnderline
	CurlyUnderline
	DottedUnderline
	DashedUnderline
)

// A Style is how a cell is drawn. It is comparable.
type Style struct {
	FG, BG, UnderlineColor Color
	Attr                   Attr
	Underline              Underline
}

// A Cell is one place of the screen.
type Cell struct {
	Text  string // one grapheme cluster; "" is blank, or filler where Width is 0
	Width int    // columns: 1, 2, or 0 for the filler behind a wide one
	Style Style
	Link  string // of OSC 8; "" for none
}

// An Origin is where in the stream a cell's text stood: from Start to before End, in bytes. A cell that nothing was written to
// has none (End is 0). Between the bytes of a cluster may stand sequences that are not text.
type Origin struct{ Start, End int64 }
