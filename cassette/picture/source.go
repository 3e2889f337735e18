package picture

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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

// Records writes the data of that page by itself, a JSON array a line: tape.go lists them.
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
			if !yieldAll(eventsOf(e), yield) {
				return
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

func yieldAll(events []event, yield func(event, error) bool) bool {
	for _, e := range events {
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

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
