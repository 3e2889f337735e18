//go:build tty && linux

package tty

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
)

// rested is how long a screen must be quiet to count as drawn.
const rested = 150 * time.Millisecond

// A played is a program on a terminal that the test uses as a person would, while a cassette is made of it.
type played struct {
	*terminal.Session
	t    *testing.T
	dir  string // of the cassette
	work string // the program's directory
	rec  *cassette.Recorder
}

// play starts a program in a directory of its own, which is its HOME too.
func play(t *testing.T, o *terminal.SessionOptions, argv ...string) *played {
	t.Helper()
	p := &played{t: t, dir: filepath.Join(t.TempDir(), "cassette")}
	if o == nil {
		o = new(terminal.SessionOptions)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Argv, p.work = argv, o.Dir
	o.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + o.Dir, "LANG=C.UTF-8", "SHELL=/bin/sh"}, o.Env...)
	var err error
	p.rec, err = cassette.Create(p.dir, &cassette.CreateOptions{
		Harness: cassette.Harness{Name: filepath.Base(argv[0])}, Command: cassette.Command{Argv: argv},
		Terminal: cassette.Terminal{InitialRows: o.Size.Rows, InitialCols: o.Size.Cols},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Keeper = terminal.Cassette(p.rec)
	if p.Session, err = terminal.StartSession(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// sees waits until text stands on the screen and the screen rests.
func (p *played) sees(text string) *terminal.Screen {
	p.t.Helper()
	p.until(terminal.Text(text))
	return p.rests()
}

// rests waits until the screen does.
func (p *played) rests() *terminal.Screen { p.t.Helper(); return p.until(terminal.Settled(rested)) }

func (p *played) until(any ...terminal.Until) *terminal.Screen {
	p.t.Helper()
	_, screen, err := p.WaitFor(p.t.Context(), any...)
	if err != nil {
		p.t.Fatal(err)
	}
	return screen
}

// keys presses keys by name.
func (p *played) keys(names ...string) { p.t.Helper(); p.must(p.Key(names...)) }

// types types text.
func (p *played) types(text string) { p.t.Helper(); p.must(p.Type(text)) }

func (p *played) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the program's end, wants a status, and a cassette that opens and derives the screen that the session had.
func (p *played) ends(status int) *cassette.Reader {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	exit, err := p.Wait(ctx)
	if err != nil {
		p.t.Fatalf("%v\n%v", err, p.Screen())
	}
	if exit.Code != status {
		p.t.Errorf("ended with %+v, want status %d\n%v", exit, status, p.Screen())
	}
	if _, err := p.rec.Finish(exit.Final()); err != nil {
		p.t.Fatal(err)
	}
	return p.sound()
}

// sound opens the cassette and holds its last frame beside the derived one and the session's screen.
func (p *played) sound() *cassette.Reader {
	p.t.Helper()
	r, err := cassette.Open(p.dir, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { r.Close() })
	var derived *cassette.Frame
	for f, err := range r.Derive(nil) {
		if err != nil {
			p.t.Fatal(err)
		}
		derived = f
	}
	last, err := r.LastFrame()
	if err != nil {
		p.t.Fatal(err)
	}
	if derived == nil || !slices.Equal(derived.Text, last.Text) || derived.Cursor != last.Cursor || derived.Title != last.Title {
		p.t.Errorf("derived %+v\nrecorded %+v", derived, last)
	}
	if screen := p.Screen(); r.ScrubReport().Status == cassette.Clean && !slices.Equal(last.Text, screen.Rows) {
		p.t.Errorf("the cassette shows\n%s\nthe session\n%v", strings.Join(last.Text, "\n"), screen)
	}
	return r
}

// frames are the texts of the recorded frames, rows joined by newlines.
func frames(t *testing.T, r *cassette.Reader) (out []string) {
	t.Helper()
	for f, err := range r.Frames() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Join(f.Text, "\n"))
	}
	return out
}

// wantFrame wants a frame that shows all of some texts.
func wantFrame(t *testing.T, r *cassette.Reader, texts ...string) {
	t.Helper()
	for _, f := range frames(t, r) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(f, text) }) {
			return
		}
	}
	t.Errorf("no frame shows %q", texts)
}

// wantRow wants a row of the screen to be some text.
func wantRow(t *testing.T, s *terminal.Screen, row int, text string) {
	t.Helper()
	if s.Row(row) != text {
		t.Errorf("row %d is %q, want %q\n%v", row, s.Row(row), text, s)
	}
}
