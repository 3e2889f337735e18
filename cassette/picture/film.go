package picture

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A Picture is what the screen shows from a time on, until the next picture.
type Picture struct {
	Time     time.Duration // of the film
	Recorded time.Duration // of the session
	Rows     int
	Cols     int
	Lines    []*Line // Rows of them; a line that stays is the same pointer in the next picture
	Cursor   vt.Cursor
	Title    string
	Colors   *Colors // nil: the theme's; the same pointer while they stay
}

// cursorWidth is how many columns the cursor takes: those of the character on which it stands.
func (p *Picture) cursorWidth() int {
	if c := p.Cursor; c.Row < len(p.Lines) && c.Col < len(p.Lines[c.Row].Cells) && p.Lines[c.Row].Cells[c.Col].Width == 2 {
		return 2
	}
	return 1
}

// A Line is a row of the screen. It does not change.
type Line struct {
	Cells   []vt.Cell // blank cells at its end are left out
	Wrapped bool      // it goes on in the next row
}

// An event is what a picture can come from.
type event struct {
	at     time.Duration
	output []byte
	size   *size
	mark   *Mark
}

type size struct{ rows, cols int }

// A session is a recording as this package reads it.
type session struct {
	size     size // at first
	largest  size
	duration time.Duration
	command  string
	events   iter.Seq2[event, error] // in their order
}

// syncLimit is how long a program may hold its screen back.
const syncLimit = time.Second

// A film makes pictures of a session.
type film struct {
	settings
	session *session
	screen  *vt.Screen
	clock   clock
	marks   func(m *Mark, at time.Duration) // told of marks in the part that is shown, at a time of the film; may be nil

	last  *Picture // that was yielded
	lines []*Line  // of the screen, and the generations that they were made at
	made  []uint64
	cells []vt.Cell // of the line that is looked at

	begun bool
	dirty bool // since has not been shown
	since time.Duration
	held  *Picture // the last whole screen of a program that holds the next one back
}

func newFilm(s *session, set settings) *film {
	f := &film{settings: set, session: s}
	f.screen = vt.New(&vt.Options{Rows: s.size.rows, Cols: s.size.cols})
	f.clock = clock{idle: set.MaxIdle, speed: set.Speed, recorded: set.From}
	if f.To <= 0 || f.To > s.duration {
		f.To = s.duration
	}
	return f
}

// A clock turns times of the session into times of the film.
type clock struct {
	idle           time.Duration
	speed          float64
	recorded, film time.Duration // of the last picture
}

func (c *clock) at(recorded time.Duration) time.Duration {
	gap := max(recorded-c.recorded, 0)
	if c.idle > 0 {
		gap = min(gap, c.idle)
	}
	return c.film + time.Duration(float64(gap)/c.speed)
}

// pictures yields the film; after that f.end is how long it is.
func (f *film) pictures() iter.Seq2[*Picture, error] {
	return func(yield func(*Picture, error) bool) {
		show := func(p *Picture) bool { return p == nil || yield(p, nil) }
		for e, err := range f.session.events {
			if err != nil {
				yield(nil, err)
				return
			}
			if e.at > f.To {
				break
			}
			f.Progress(e.at, f.To)
			if !show(f.before(e.at)) {
				return
			}
			f.apply(e)
		}
		f.begin()
		show(f.flush(f.since))
	}
}

// end is the film's length: it lasts until the end of the part that is shown.
func (f *film) end() time.Duration { return f.clock.at(f.To) }

// before returns the picture that is due before something happens.
func (f *film) before(at time.Duration) *Picture {
	if !f.begun {
		if at < f.From {
			return nil
		}
		f.begin()
	}
	if !f.dirty || at < f.since+f.step {
		return nil
	}
	if f.sync() && f.held == nil && at < f.since+syncLimit {
		return nil
	}
	return f.flush(f.since)
}

// begin has what stands there when the part begins be shown first.
func (f *film) begin() {
	if !f.begun {
		f.begun, f.dirty, f.since = true, true, f.From
	}
}

// flush returns what has not been shown yet, if it looks different.
func (f *film) flush(at time.Duration) *Picture {
	p := f.held
	if p == nil || !f.sync() {
		p = f.snapshot()
	}
	f.dirty, f.held = false, nil
	if f.last != nil && same(f.last, p) {
		return nil
	}
	p.Time, p.Recorded = f.clock.at(at), at
	f.clock.film, f.clock.recorded = p.Time, at
	f.last = p
	return p
}

func (f *film) sync() bool {
	set, _ := f.screen.Mode(true, 2026)
	return set
}

var syncEnd = []byte("\x1b[?2026l")

// apply has the screen take an event. Where a program shows a screen and holds the next one back in the same write, the first
// is kept.
func (f *film) apply(e event) {
	switch {
	case e.mark != nil:
		if f.begun && f.marks != nil {
			f.marks(e.mark, f.clock.at(e.at))
		}
		return
	case e.size != nil:
		f.screen.Resize(e.size.rows, e.size.cols)
	default:
		whole := bytes.LastIndex(e.output, syncEnd) + len(syncEnd)
		if whole >= len(syncEnd) && f.begun {
			f.write(e.output[:whole])
			f.held = nil
			e.output = e.output[whole:]
			if bytes.Contains(e.output, []byte("\x1b[?2026h")) && !f.sync() {
				f.held = f.snapshot()
			}
		}
		f.write(e.output)
	}
	if !f.dirty {
		f.dirty, f.since = true, e.at
	}
}

func (f *film) write(p []byte) { _, _ = f.screen.Write(p) } // it never fails

// snapshot takes what the screen shows. Lines that did not change are taken from the last one.
func (f *film) snapshot() *Picture {
	s := f.screen
	rows, cols := s.Size()
	if len(f.lines) != rows || f.last == nil || f.last.Cols != cols {
		f.lines, f.made = make([]*Line, rows), make([]uint64, rows)
	}
	for i := range rows {
		g := s.Changed(i)
		if f.lines[i] != nil && f.made[i] == g {
			continue
		}
		f.made[i] = g
		f.cells = s.AppendCells(f.cells[:0], i)
		line := &Line{Cells: trim(f.cells), Wrapped: s.Wrapped(i)}
		if old := f.lines[i]; old == nil || !old.equal(line) {
			line.Cells = slices.Clone(line.Cells)
			f.lines[i] = line
		}
	}
	p := &Picture{Rows: rows, Cols: cols, Lines: slices.Clone(f.lines), Cursor: s.Cursor(), Title: s.Title()}
	var before *Colors
	if f.last != nil {
		before = f.last.Colors
	}
	p.Colors = colorsOf(s, before)
	return p
}

func (l *Line) equal(o *Line) bool {
	return l == o || l.Wrapped == o.Wrapped && slices.Equal(l.Cells, o.Cells)
}

// Text returns the line's text: a wide character once, no blanks at its end.
func (l *Line) Text() string {
	var b strings.Builder
	for _, c := range l.Cells {
		switch {
		case c.Text != "":
			b.WriteString(c.Text)
		case c.Width != 0:
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// trim leaves out blank cells at the end.
func trim(cells []vt.Cell) []vt.Cell {
	n := len(cells)
	for n > 0 && blank(&cells[n-1]) {
		n--
	}
	return cells[:n]
}

func blank(c *vt.Cell) bool {
	return (c.Text == "" || c.Text == " ") && c.Width == 1 && c.Link == "" && c.Style.BG == vt.ColorDefault &&
		c.Style.Attr&(vt.Reverse|vt.Strike|vt.Overline) == 0 && c.Style.Underline == vt.NoUnderline
}

// same says whether two pictures look the same.
func same(a, b *Picture) bool {
	if a.Rows != b.Rows || a.Cols != b.Cols || a.Title != b.Title || a.Colors != b.Colors {
		return false
	}
	if a.Cursor.Visible != b.Cursor.Visible || b.Cursor.Visible && (a.Cursor.Row != b.Cursor.Row || a.Cursor.Col != b.Cursor.Col || a.Cursor.Shape != b.Cursor.Shape) {
		return false
	}
	return slices.EqualFunc(a.Lines, b.Lines, (*Line).equal)
}
