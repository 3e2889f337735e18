package picture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
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

// A Mark is something that happened beside the output.
type Mark struct {
	Recorded time.Duration
	Kind     string // input, resize, signal, service
	Label    string
	typed    string // of an input: its letters, without blanks and keys that have none
}

// GIF writes an animated GIF that begins again for ever. Each picture holds the cells that changed; its colours are exact where
// 255 suffice.
func GIF(w io.Writer, r *cassette.Reader, o *Options) error { return with(r, o, w, writeGIF) }

// SVG writes an SVG: an animated one, or with Options.Still one screen. Text stays text.
func SVG(w io.Writer, r *cassette.Reader, o *Options) error {
	if o != nil && o.Still {
		return with(r, o, w, writeStill)
	}
	return with(r, o, w, writeSVG)
}

// Text writes the session as people read it: all that scrolled off the screen, then the screen. Where that is nothing, for a
// program took its screen away again, it is what stood there last. With Options.Still it is one screen. Blanks at the end of lines
// are left out, and blank lines at the beginning and the end.
func Text(w io.Writer, r *cassette.Reader, o *Options) error {
	if o != nil && o.Still {
		return with(r, o, w, writeScreen)
	}
	return with(r, o, w, writeText)
}

// HTML writes one page with a player, which needs nothing else.
func HTML(w io.Writer, r *cassette.Reader, o *Options) error { return with(r, o, w, writeHTML) }

// Records writes the data of that page by itself, a JSON array a line: page.go lists them.
func Records(w io.Writer, r *cassette.Reader, o *Options) error {
	return with(r, o, w, func(w io.Writer, s *session, o *Options) error {
		_, err := writeTape(w, s, o.settings())
		return err
	})
}

func with(r *cassette.Reader, o *Options, w io.Writer, write func(io.Writer, *session, *Options) error) error {
	s, err := sessionOf(r)
	if err != nil {
		return err
	}
	out := &sink{w: w}
	events := s.events
	s.events = func(yield func(event, error) bool) {
		for e, err := range events {
			if err == nil {
				err = out.failure()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
	return write(out, s, o)
}

// A sink is where a picture is written. Once that fails the session ends with the same error, or much would be drawn for nobody.
type sink struct {
	w   io.Writer
	err atomic.Pointer[error]
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (s *sink) failure() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// sessionOf reads a cassette's sizes and length, not its output.
func sessionOf(r *cassette.Reader) (*session, error) {
	m := r.Manifest()
	s := &session{command: strings.Join(m.Command.Argv, " "), size: size{m.Terminal.InitialRows, m.Terminal.InitialCols}.known()}
	s.largest = s.size
	streams := []cassette.Stream{cassette.StreamInput}
	if f := r.Final(); f != nil {
		s.duration = max(f.Time(), f.Duration())
	} else {
		streams = nil // the last event is the end
	}
	for e, err := range r.Events(&cassette.EventsOptions{Streams: streams, NoBytes: true}) {
		if err != nil {
			return nil, err
		}
		s.duration = max(s.duration, e.Time())
		if e.Input != nil && e.Input.Kind == cassette.KindResize && e.Input.Size != nil {
			now := size{e.Input.Size.Rows, e.Input.Size.Cols}.known()
			s.largest = size{max(s.largest.rows, now.rows), max(s.largest.cols, now.cols)}
		}
	}
	s.events = func(yield func(event, error) bool) {
		for e, err := range r.Events(&cassette.EventsOptions{Streams: shown}) {
			if err != nil {
				yield(event{}, err)
				return
			}
			for _, one := range eventsOf(e) {
				if !yield(one, nil) {
					return
				}
			}
		}
	}
	return s, nil
}

var shown = []cassette.Stream{cassette.StreamInput, cassette.StreamOutput, cassette.StreamService}

// known is a size that a screen may have.
func (s size) known() size {
	if s.rows < 1 {
		s.rows = cassette.DefaultRows
	}
	if s.cols < 1 {
		s.cols = cassette.DefaultCols
	}
	return size{min(s.rows, maxCells), min(s.cols, maxCells)}
}

// maxCells is the most rows and columns that a picture has.
const maxCells = 1000

func eventsOf(e *cassette.Event) []event {
	at := e.Time()
	mark := func(kind, label string) event {
		return event{at: at, mark: &Mark{Recorded: at, Kind: kind, Label: clean(cut(label, 200))}}
	}
	switch {
	case e.Chunk != nil:
		return []event{{at: at, output: e.Bytes}}
	case e.Service != nil:
		return []event{mark("service", serviceLabel(e.Service.Payload))}
	case e.Input == nil:
		return nil
	}
	switch in := e.Input; {
	case in.Kind == cassette.KindResize && in.Size != nil:
		now := size{in.Size.Rows, in.Size.Cols}.known()
		return []event{{at: at, size: &now}, mark("resize", fmt.Sprintf("%d×%d", now.cols, now.rows))}
	case in.Kind == cassette.KindSignal:
		return []event{mark("signal", in.Signal)}
	case utf8.RuneCountInString(in.Key) > 1:
		return []event{mark("input", in.Key)}
	default:
		e := mark("input", visible.Line(string(in.Bytes)))
		e.mark.typed = letters(string(in.Bytes))
		return []event{e}
	}
}

// letters are those characters of a text that are seen.
func letters(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsGraphic(c) && !unicode.IsSpace(c) {
			return c
		}
		return -1
	}, s)
}

// serviceLabel says what an event of the layer above is: what it calls itself, or its beginning.
func serviceLabel(payload json.RawMessage) string {
	var named map[string]json.RawMessage
	if json.Unmarshal(payload, &named) == nil {
		for _, key := range []string{"label", "title", "name", "type", "event", "kind", "message", "text"} {
			var s string
			if json.Unmarshal(named[key], &s) == nil && s != "" {
				return s
			}
		}
	}
	var s string
	if json.Unmarshal(payload, &s) == nil {
		return s
	}
	return string(payload)
}

func cut(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
