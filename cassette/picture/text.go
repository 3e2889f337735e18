package picture

import (
	"bufio"
	"io"
	"strings"

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
	t := &scroll{screen: vt.New(&vt.Options{Rows: s.size.rows, Cols: s.size.cols, Scrollback: scrollback}), out: out}
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

// scrollback is more lines than piece bytes can push off a screen without the model's letting go of one that was not read.
const (
	scrollback = 1 << 17
	piece      = 1 << 16
)

// A scroll follows the lines that leave a screen.
type scroll struct {
	screen *vt.Screen
	out    *textWriter
	seen   int // lines of the scrollback that are written
}

func (t *scroll) apply(e event) {
	if e.size != nil {
		t.screen.Resize(e.size.rows, e.size.cols)
		t.seen = min(t.seen, t.screen.ScrollbackLen())
	}
	for len(e.output) > 0 {
		n := min(len(e.output), piece)
		_, _ = t.screen.Write(e.output[:n])
		e.output = e.output[n:]
	}
}

func (t *scroll) end() {
	s := t.screen
	for i := range s.ScrollbackLen() {
		t.out.part(s.ScrollbackRow(i), s.ScrollbackWrapped(i))
	}
	rows, _ := s.Size()
	for i := range rows {
		t.out.part(s.Row(i), s.Wrapped(i) && i < rows-1)
	}
}

// A textWriter writes lines without the blanks at their ends, and without blank lines at the end.
type textWriter struct {
	w     *bufio.Writer
	blank int
	open  string // the beginning of a line that was wrapped
}

// part adds a row; what is wrapped goes on with the next.
func (t *textWriter) part(row string, wrapped bool) {
	t.open += row
	if wrapped && len(t.open) < 1<<20 {
		return
	}
	line := t.open
	t.open = ""
	t.line(line)
}

func (t *textWriter) line(s string) {
	s = strings.TrimRight(clean(s), " \u00a0")
	if s == "" {
		t.blank++
		return
	}
	for ; t.blank > 0; t.blank-- {
		_ = t.w.WriteByte('\n')
	}
	_, _ = t.w.WriteString(s)
	_ = t.w.WriteByte('\n')
}
