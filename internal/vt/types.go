package vt

import (
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

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
