package screen

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// KindScreen is the kind under which a timeline shows what the terminal showed and was given.
const KindScreen = "screen"

// LaneTerminal is the lane of all that.
const LaneTerminal = "terminal"

// What a ScreenChange is.
const (
	ChangeScreen = "screen" // something else stands on the screen, and has come to rest
	ChangeTyped  = "typed"
	ChangeSize   = "resize"
	ChangeSignal = "signal"
)

// A Change is one thing that the program's terminal showed or was given.
type Change struct {
	G    uint64 `json:"g"` // the recorder's ordinal, which orders it among the records of the tape
	TMS  int64  `json:"monotonic_ms"`
	What string `json:"change"`

	Changed int    `json:"rows_changed,omitempty"` // rows, without those that move by themselves
	Row     int    `json:"row,omitempty"`          // the one that tells most, from 1
	Text    string `json:"text,omitempty"`         // of that row
	Title   string `json:"title,omitempty"`        // where it changed
	Alt     *bool  `json:"alternate,omitempty"`    // where it changed

	Keys   string         `json:"keys,omitempty"` // what was typed, in words
	Bytes  []byte         `json:"bytes,omitempty"`
	Size   *cassette.Size `json:"size,omitempty"`
	Signal string         `json:"signal,omitempty"`

	Screen []string `json:"screen,omitempty"` // all rows, where they were asked for
}

// String says it in one line. What stands in it came from the program: it is not safe to print as it is.
func (c *Change) String() string {
	switch c.What {
	case ChangeTyped:
		return "typed: " + c.Keys
	case ChangeSize:
		return fmt.Sprintf("resized: %d by %d", c.Size.Rows, c.Size.Cols)
	case ChangeSignal:
		return "signal: " + c.Signal
	}
	var parts []string
	if c.Alt != nil && *c.Alt {
		parts = append(parts, "the alternate screen")
	} else if c.Alt != nil {
		parts = append(parts, "the primary screen")
	}
	if c.Title != "" {
		parts = append(parts, "title "+c.Title)
	}
	switch text := ": " + c.Text; {
	case c.Changed > 0 && c.Text == "":
		parts = append(parts, fmt.Sprintf("rows cleared: %d", c.Changed))
	case c.Changed == 1:
		parts = append(parts, fmt.Sprintf("row %d%s", c.Row, text))
	case c.Changed > 1:
		parts = append(parts, fmt.Sprintf("%d rows, row %d%s", c.Changed, c.Row, text))
	}
	return strings.Join(parts, ", ")
}

// Changes yields what the terminal of r showed and was given, in the order of ordinals; nothing where r has none. whole has
// each change carry the screen. It holds one screen, however long the recording is.
func Changes(r *recording.Recording, whole bool) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		c, err := r.OpenTerminal()
		if c == nil {
			if err != nil {
				yield(nil, err)
			}
			return
		}
		defer c.Close()
		track, events := trackerOf(c)
		w := &changeWriter{track: track, whole: whole, yield: yield}
		w.remember()
		for e, err := range events {
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", c.Dir(), err))
				return
			}
			if !w.event(e) {
				return
			}
		}
		w.settle()
	}
}

// A changeWriter makes changes of events.
type changeWriter struct {
	track *Tracker
	whole bool
	yield func(*Change, error) bool

	shown []string // the screen as it was last told
	title string
	alt   bool
	open  bool   // something was printed that was not told
	g     uint64 // of the last of it
	ms    int64
}

// event reports whether to go on.
func (w *changeWriter) event(e *cassette.Event) bool {
	if w.open && (e.Chunk == nil || e.TMS-w.ms >= settled.Milliseconds()) && !w.settle() {
		return false
	}
	switch {
	case e.Chunk != nil:
		w.track.Output(e.TMS, e.Bytes)
		w.open, w.g, w.ms = true, e.G, e.TMS
	case e.Input != nil:
		return w.input(e)
	}
	return true
}

func (w *changeWriter) input(e *cassette.Event) bool {
	c := &Change{G: e.G, TMS: e.TMS}
	switch in := e.Input; {
	case in.Kind == cassette.KindResize && in.Size != nil:
		c.What, c.Size = ChangeSize, in.Size
		w.track.Resize(e.TMS, in.Size.Rows, in.Size.Cols)
		w.remember() // what stands elsewhere for that is no change of the program's
	case in.Kind == cassette.KindSignal:
		c.What, c.Signal = ChangeSignal, in.Signal
	default:
		c.What, c.Keys, c.Bytes = ChangeTyped, KeyNames(in.Bytes), in.Bytes
		w.track.Cause(e.TMS)
	}
	return w.yield(c, nil)
}

// settle tells what has changed on the screen since that was last told.
func (w *changeWriter) settle() bool {
	w.open = false
	w.track.sync()
	c := &Change{G: w.g, TMS: w.ms, What: ChangeScreen}
	best := -1
	for i := range w.track.rows {
		r := &w.track.rows[i]
		if i < len(w.shown) && w.shown[i] == r.text || r.moving(w.ms) {
			continue
		}
		c.Changed++
		if n := w.telling(r.text); n > best {
			best, c.Row, c.Text = n, i+1, strings.TrimSpace(r.text)
		}
	}
	if t := &w.track.title; t.text != w.title && !t.moving(w.ms) {
		c.Title = t.text
	}
	if alt := w.track.alt; alt != w.alt {
		c.Alt = &alt
	}
	w.remember()
	if c.Changed == 0 && c.Title == "" && c.Alt == nil {
		return true
	}
	if w.whole {
		c.Screen = w.shown
	}
	return w.yield(c, nil)
}

// telling is how much the text of a row tells: its letters and digits, nothing where it stood on the screen before.
func (w *changeWriter) telling(text string) (n int) {
	if slices.Contains(w.shown, text) {
		return 0
	}
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

func (w *changeWriter) remember() {
	w.title, w.alt = w.track.title.text, w.track.alt
	w.shown = make([]string, len(w.track.rows))
	for i := range w.shown {
		w.shown[i] = w.track.rows[i].text
	}
}

// keyNames are what terminals send for keys without a character, as xterm does.
var keyNames = []struct{ bytes, name string }{
	{"\x1b[200~", "PASTE["}, {"\x1b[201~", "]"}, {"\x1b[I", "FOCUS"}, {"\x1b[O", "BLUR"},
	{"\x1b[A", "UP"}, {"\x1b[B", "DOWN"}, {"\x1b[C", "RIGHT"}, {"\x1b[D", "LEFT"},
	{"\x1bOA", "UP"}, {"\x1bOB", "DOWN"}, {"\x1bOC", "RIGHT"}, {"\x1bOD", "LEFT"},
	{"\x1b[H", "HOME"}, {"\x1b[F", "END"}, {"\x1bOH", "HOME"}, {"\x1bOF", "END"},
	{"\x1b[2~", "INSERT"}, {"\x1b[3~", "DELETE"}, {"\x1b[5~", "PGUP"}, {"\x1b[6~", "PGDN"}, {"\x1b[Z", "BACKTAB"},
	{"\x1bOP", "F1"}, {"\x1bOQ", "F2"}, {"\x1bOR", "F3"}, {"\x1bOS", "F4"}, {"\x1b[15~", "F5"}, {"\x1b[17~", "F6"},
	{"\x1b[18~", "F7"}, {"\x1b[19~", "F8"}, {"\x1b[20~", "F9"}, {"\x1b[21~", "F10"}, {"\x1b[23~", "F11"}, {"\x1b[24~", "F12"},
	{"\r", "ENTER"}, {"\n", "^J"}, {"\t", "TAB"}, {"\x7f", "BACKSPACE"}, {"\x00", "^@"},
}

// KeyNames says in words what was typed: text as it stands, keys by their names, as in "ihello ESC :wq ENTER".
func KeyNames(keys []byte) string {
	var b strings.Builder
	text := false // what was written last is text
	for len(keys) > 0 {
		name, n := keyName(keys)
		if n > 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(name)
			keys, text = keys[n:], false
			continue
		}
		if !text && b.Len() > 0 {
			b.WriteByte(' ')
		}
		r, size := utf8.DecodeRune(keys)
		b.WriteRune(r)
		keys, text = keys[size:], true
	}
	return b.String()
}

// keyName returns the name of the key that keys begin with, and its length; 0 where that is a character.
func keyName(keys []byte) (string, int) {
	for i := range keyNames {
		if k := &keyNames[i]; strings.HasPrefix(string(keys[:min(len(keys), len(k.bytes))]), k.bytes) {
			return k.name, len(k.bytes)
		}
	}
	switch c := keys[0]; {
	case c == 0x1b && len(keys) > 2 && keys[1] == '[':
		return sequenceName(keys)
	case c == 0x1b:
		return "ESC", 1
	case c < 0x20:
		return "^" + string(rune(c+'@')), 1
	}
	return "", 0
}

// sequenceName names a control sequence that is no key of its own: a report of the mouse, an answer of the terminal.
func sequenceName(keys []byte) (string, int) {
	for i := 2; i < len(keys); i++ {
		c := keys[i]
		switch {
		case c >= 0x20 && c < 0x40:
			continue
		case c < 0x20 || c > 0x7e:
			return "ESC", 1
		}
		if keys[2] == '<' {
			return "MOUSE" + string(keys[3:i+1]), i + 1
		}
		return "ESC[" + string(keys[2:i+1]), i + 1
	}
	return "ESC", 1
}
