package vt

import (
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// A Screen is a terminal's screen. It is for one goroutine.
type Screen struct {
	cursor

	m       machine
	visible bool
	modes   modes
	shape   int
	palette palette
	kitty   [2]kittyFlags // primary, alternate

	title  string
	titles []string // of XTWINOPS 22
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
	s.title, s.titles = "", nil
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

// Write reads the next bytes that the program wrote. It does not fail.
func (s *Screen) Write(p []byte) (int, error) {
	s.m.feed(p, s)
	return len(p), nil
}

// Cursor is where the next character goes.
func (s *Screen) Cursor() Cursor {
	return Cursor{Row: s.y, Col: s.x, Visible: s.visible, Pending: s.pending, Shape: s.shape}
}

// Title is the window's title.
func (s *Screen) Title() string { return s.title }

// Palette is colour i of the palette, 0…255.
func (s *Screen) Palette(i int) (r, g, b uint8) { return s.palette.color(i) }

// DefaultColors are the colours of ColorDefault, red, green and blue.
func (s *Screen) DefaultColors() (fg, bg [3]uint8) {
	for i, c := range []*[3]uint8{&fg, &bg} {
		c[0], c[1], c[2] = split(s.palette.of(i))
	}
	return fg, bg
}

// Ground reports whether the stream is between sequences and code points.
func (s *Screen) Ground() bool { return s.m.ground() }

// Offset is how many bytes were written.
func (s *Screen) Offset() int64 { return s.m.pos }

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
	// Origins has each cell remember the bytes that drew it: see Screen.Origin. It costs memory and time.
	Origins bool
}

// MaxSize is the most rows, and the most columns, that a Screen has. MaxCells is the most cells: rows beyond it are not there.
const (
	MaxSize  = 4096
	MaxCells = 1 << 18
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

// Resize gives the screen another size, capped to MaxSize and MaxCells; nothing changes where one is below 1. Lines of the primary screen that
// were wrapped are wrapped anew.
func (s *Screen) Resize(rows, cols int) {
	if rows < 1 || cols < 1 {
		return
	}
	if rows, cols = capped(rows, cols); rows == s.rows && cols == s.cols {
		return
	}
	s.forget()
	now := &spot{y: s.y, x: s.x, pending: s.pending}
	for _, b := range []*buffer{&s.primary, &s.alternate} {
		if b.rows == nil {
			continue // not used yet
		}
		kept := &spot{y: b.saved.y, x: b.saved.x, pending: b.saved.pending}
		spots := []*spot{kept, kept}
		if b == s.buf {
			spots[0] = now
		}
		s.resizeBuffer(b, rows, cols, spots)
		b.saved.y, b.saved.x, b.saved.pending = kept.y, kept.x, kept.pending
	}
	s.rows, s.cols = rows, cols
	s.y, s.x, s.pending = now.y, now.x, now.pending
	s.tabs.resize(cols)
	s.margins()
	s.gen++
}
