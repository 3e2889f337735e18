package picture

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// writeScreen writes one screen as text.
func writeScreen(w io.Writer, s *session, o *Options) error {
	p, err := at(s, o)
	if err != nil {
		return err
	}
	out := &textWriter{w: bufio.NewWriter(w)}
	for _, l := range p.Lines {
		out.line(l.Text())
	}
	return out.w.Flush()
}

// at returns the picture of one time of a session.
func at(s *session, o *Options) (*Picture, error) {
	set := o.settings()
	set.From, set.To = 0, set.At
	f := newFilm(s, set)
	f.step = s.duration + 1 // one picture, at the end
	var last *Picture
	for p, err := range f.pictures() {
		if err != nil {
			return nil, err
		}
		last = p
	}
	last.Time, last.Recorded = 0, f.To
	return last, nil
}

// writeText writes all that scrolled off the screen and what is on it.
func writeText(w io.Writer, s *session, o *Options) error {
	set := o.settings()
	out := &textWriter{w: bufio.NewWriter(w)}
	t := &scroll{screen: vt.New(&vt.Options{Rows: s.size.rows, Cols: s.size.cols, Scrollback: keptLines}), out: out}
	end := set.To
	if end <= 0 {
		end = s.duration
	}
	for e, err := range s.events {
		if err != nil {
			return err
		}
		if e.at > end {
			break
		}
		set.Progress(e.at, end)
		t.apply(e)
	}
	t.end()
	return out.w.Flush()
}

// A screen keeps keptLines of what scrolled off it. Lines are written before it lets go of them, which it does after a number
// of bytes; the last backLines are not written until the end, for a larger window brings lines back.
const (
	keptLines = 8192
	backLines = keptLines / 4
	piece     = keptLines / 4
)

// A scroll follows the lines that leave a screen.
type scroll struct {
	screen   *vt.Screen
	out      *textWriter
	written  int // how many lines of the scrollback are written, from the oldest
	scrolled uint64
	kept     int

	alternate []string // what stood on the alternate screen when it was left last
	before    []string // what stood there before the last line feed of a program that leaves it
}

func (t *scroll) apply(e event) {
	if e.size != nil {
		open := t.openLines()
		t.screen.Resize(e.size.rows, e.size.cols)
		t.rewind(open)
	}
	feed := len(e.output) - lastFeed(e.output) // how much comes from it on
	for len(e.output) > 0 {
		n := min(len(e.output), piece)
		if i := bytes.Index(e.output[1:n], decReset) + 1; i > 0 {
			n = i
		}
		switch left := len(e.output); {
		case left > feed:
			n = min(n, left-feed)
		case left == feed && t.screen.Alt():
			t.before = t.screen.Text()
		}
		if t.screen.Alt() && alternateEnd.Match(e.output[:n]) {
			t.leave()
		}
		_, _ = t.screen.Write(e.output[:n])
		e.output = e.output[n:]
		t.follow()
	}
}

// lastFeed is where the last line feed before the end of the alternate screen stands in p; len(p) where there is none.
func lastFeed(p []byte) int {
	if end := alternateLeft.FindIndex(p); end != nil {
		if i := bytes.LastIndexByte(p[:end[0]], '\n'); i >= 0 {
			return i
		}
	}
	return len(p)
}

// leave keeps the alternate screen. Some programs go to a new line first, as vim does, and so push a row out at the top.
func (t *scroll) leave() {
	t.alternate = t.screen.Text()
	if n := len(t.alternate); n > 1 && len(t.before) == n && slices.Equal(t.before[1:], t.alternate[:n-1]) {
		t.alternate = t.before
	}
	t.before = nil
}

// What begins a change of modes, and what leaves the alternate screen, where it stands at the beginning.
var (
	decReset      = []byte("\x1b[?")
	alternateEnd  = lazyregexp.New(`^\x1b\[\?[0-9;]*(1049|1047|47)[0-9;]*l`)
	alternateLeft = lazyregexp.New(`\x1b\[\?[0-9;]*(1049|1047|47)[0-9;]*l`)
)

// follow writes lines that the screen will let go of.
func (t *scroll) follow() {
	s := t.screen
	gone := t.kept + int(s.Scrolled()-t.scrolled) - s.ScrollbackLen()
	t.written = max(t.written-max(gone, 0), 0)
	t.kept, t.scrolled = s.ScrollbackLen(), s.Scrolled()
	if t.kept-t.written < keptLines/2 {
		return
	}
	t.until(t.kept - backLines)
}

func (t *scroll) until(n int) {
	_, cols := t.screen.Size()
	for ; t.written < n; t.written++ {
		t.out.part(t.screen.ScrollbackRow(t.written), t.screen.ScrollbackWrapped(t.written), cols)
	}
}

// openLines counts the lines, wrapped rows as one, from the first that is not written to the cursor's.
func (t *scroll) openLines() int {
	n := 1
	for i := t.written; i < t.screen.ScrollbackLen(); i++ {
		if !t.screen.ScrollbackWrapped(i) {
			n++
		}
	}
	for i := range t.screen.Cursor().Row {
		if !t.screen.Wrapped(i) {
			n++
		}
	}
	return n
}

// rewind finds that place again after the rows were wrapped anew.
func (t *scroll) rewind(open int) {
	t.kept, t.scrolled = t.screen.ScrollbackLen(), t.screen.Scrolled()
	if t.written == 0 {
		return
	}
	t.written = 0
	t.out.open.Reset() // the line is read again from its beginning
	t.out.gap = 0
	for n := t.openLines(); t.written < t.kept && n > open; t.written++ {
		if !t.screen.ScrollbackWrapped(t.written) {
			n--
		}
	}
}

func (t *scroll) end() {
	s := t.screen
	t.until(s.ScrollbackLen())
	rows, cols := s.Size()
	for i := range rows {
		t.out.part(s.Row(i), s.Wrapped(i) && i < rows-1, cols)
	}
	if t.out.any {
		return
	}
	for _, row := range t.alternate {
		t.out.line(row)
	}
}

// A textWriter writes lines without the blanks at their ends, and without blank lines at the beginning and the end.
type textWriter struct {
	w     *bufio.Writer
	blank int
	any   bool            // a line is written; blank ones before it are not
	open  strings.Builder // the beginning of a line that was wrapped
	gap   int             // columns that it left free
}

// part adds a row; what is wrapped goes on with the next. Blanks at its end are part of the line then, but for the one that a
// wide character did not fit into.
func (t *textWriter) part(row string, wrapped bool, cols int) {
	if _, w := vt.FirstCluster(row); t.gap > 1 || t.gap == 1 && w < 2 {
		t.open.WriteString(strings.Repeat(" ", t.gap))
	}
	t.gap = 0
	t.open.WriteString(row)
	if wrapped && t.open.Len() < 1<<20 {
		t.gap = max(cols-vt.StringWidth(row), 0)
		return
	}
	line := t.open.String()
	t.open.Reset()
	t.line(line)
}

func (t *textWriter) line(s string) {
	s = strings.TrimRight(clean(s), " \u00a0")
	if s == "" {
		t.blank++
		return
	}
	if !t.any {
		t.any, t.blank = true, 0
	}
	for ; t.blank > 0; t.blank-- {
		_ = t.w.WriteByte('\n')
	}
	_, _ = t.w.WriteString(s)
	_ = t.w.WriteByte('\n')
}

// clean returns text that is safe to show: what controls a terminal, turns the direction of text, or is not allowed in XML
// becomes U+FFFD.
func clean(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return strings.Map(cleanRune, s)
		}
	}
	return s
}

func cleanRune(c rune) rune {
	switch {
	case c < ' ', c >= 0x7F && c < 0xA0, c == 0xFFFE, c == 0xFFFF, !utf8.ValidRune(c), unicode.Is(unicode.Bidi_Control, c), c == 0x2028, c == 0x2029:
		return utf8.RuneError
	}
	return c
}

// seen returns a cell's text without what is not seen: a letter with formats behind it is the letter; a blank is "", and so
// is a soft hyphen, which has a cell and that nobody draws alike.
func seen(text string) string {
	if text == " " || text == "\u00ad" {
		return ""
	}
	if len(text) < 2 {
		return text
	}
	c, n := utf8.DecodeRuneInString(text)
	if c >= 0x1000 || n == len(text) {
		return text
	}
	for _, next := range text[n:] {
		if !unicode.Is(unicode.Cf, next) {
			return text
		}
	}
	return seen(text[:n])
}
