package screen

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxHinted is how much output, in bytes, is drawn again for no more than a hint.
const maxHinted = 64 << 20

// Why screens that were asked for cannot be compared.
var (
	errNoTerminal = errors.New("the program had no terminal, so there is no screen to compare: leave out --tty")
	errNoScreens  = errors.New("the recording has no " + recording.TerminalName + "/, for it was made by an older tapedeck: leave out --tty, or record it again")
)

// A Side is a run whose terminal is compared.
type Side struct {
	Dir      string // of the run
	Finished bool
	seen     *fidelity.Showing // nil until it was looked at
}

// SideOf is what the program of r was shown on.
func SideOf(r *recording.Recording) *Side {
	return &Side{Dir: r.Dir, Finished: r.Finished()}
}

// Show returns what the terminal showed; nil where none was recorded.
func (t *Side) Show() (*fidelity.Showing, error) {
	if t.seen != nil {
		return t.seen, nil
	}
	c, err := recording.OpenTerminal(filepath.Join(t.Dir, recording.TerminalName), !t.Finished)
	if c == nil || err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := tape.Open(filepath.Join(t.Dir, recording.TapeName), &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t.seen, err = showing(c, f.Records())
	return t.seen, err
}

// hinted is show for a hint: of what is soon drawn.
func (t *Side) hinted() (*fidelity.Showing, error) {
	info, err := os.Stat(filepath.Join(t.Dir, recording.TerminalName, cassette.OutputFile))
	if err != nil || info.Size() > maxHinted {
		return nil, recording.Gone(err)
	}
	return t.Show()
}

// Screens says how the terminals of two runs compare; nil where one of them had none and that does not matter.
func Screens(tty *recording.TTY, m *masks.Masker, gate bool, sides [2]*Side) (*fidelity.Screens, error) {
	switch {
	case tty == nil && gate:
		return nil, errNoTerminal
	case tty == nil:
		return nil, nil
	case !recording.Exists(filepath.Join(sides[0].Dir, recording.TerminalName)) && gate:
		return nil, fmt.Errorf("%s: %w", sides[0].Dir, errNoScreens)
	}
	s := &fidelity.Screens{Gate: gate, Stream: tty.ShownAs()}
	s.Mask = func(row string) string { return string(m.Mask(scrub.Renumber([]byte(row)))) }
	s.Load = func(side fidelity.Side) (*fidelity.Showing, error) {
		if !gate {
			return sides[side].hinted()
		}
		seen, err := sides[side].Show()
		if seen == nil && err == nil {
			err = fmt.Errorf("%s has no %s/", sides[side].Dir, recording.TerminalName)
		}
		return seen, err
	}
	return s, nil
}

// showing reads what a terminal showed whenever something was typed, and at the end. What came of the network meanwhile is on the
// tape, whose records are those. The error is that of either.
func showing(c *cassette.Reader, records iter.Seq2[*tape.Record, error]) (*fidelity.Showing, error) {
	causes, err := causesOn(records)
	if err != nil {
		return nil, err
	}
	track, events := trackerOf(c)
	s := &shower{track: track, causes: causes, out: new(fidelity.Showing)}
	for e, err := range events {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Dir(), err)
		}
		s.event(e)
	}
	return s.out, nil
}

// trackerOf is a tracker for the screen of a cassette, and what happened there.
func trackerOf(c *cassette.Reader) (*Tracker, iter.Seq2[*cassette.Event, error]) {
	m := c.Manifest().Terminal
	streams := []cassette.Stream{cassette.StreamInput, cassette.StreamOutput, cassette.StreamFinal}
	return NewTracker(m.InitialRows, m.InitialCols), c.Events(&cassette.EventsOptions{Streams: streams})
}

// A shower makes a Showing of the events of a cassette.
type shower struct {
	track  *Tracker
	causes []uint64 // ordinals of what came of the network
	out    *fidelity.Showing
	typed  int64
}

func (s *shower) event(e *cassette.Event) {
	for len(s.causes) > 0 && s.causes[0] < e.G {
		s.track.Cause(e.TMS)
		s.causes = s.causes[1:]
	}
	switch {
	case e.Chunk != nil:
		s.track.Output(e.TMS, e.Bytes)
	case e.Final != nil:
		s.moment(e, "")
		out := make([]string, s.track.scr.ScrollbackLen())
		for i := range out {
			out[i] = s.track.scr.ScrollbackRow(i)
		}
		s.out.History = out
		if len(s.out.History) >= maxHistory {
			s.out.Lost = 1
		}
	case e.Input.Kind == cassette.KindResize && e.Input.Size != nil:
		s.track.Resize(e.TMS, e.Input.Size.Rows, e.Input.Size.Cols)
	case e.Input.Kind == cassette.KindInput:
		s.moment(e, KeyNames(e.Input.Bytes))
		s.typed += int64(len(e.Input.Bytes))
		s.track.Cause(e.TMS)
	}
}

func (s *shower) moment(e *cassette.Event, before string) {
	m := fidelity.Moment{TMS: e.TMS, G: e.G, Typed: s.typed, Before: before, End: e.Final != nil}
	m.Screen, m.Drawing = s.track.Screen(e.TMS)
	m.Drawing = m.Drawing && !m.End
	s.out.Moments = append(s.out.Moments, m)
}

// causesOn lists the ordinals of what came of the network: each chunk of an answer, and the end of each exchange.
func causesOn(records iter.Seq2[*tape.Record, error]) (out []uint64, err error) {
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		x := tape.ExchangeOf(rec.Kind)
		if x == nil || rec.G == 0 {
			continue
		}
		for i := range x.Stream {
			if g := x.Stream[i].G; g != 0 {
				out = append(out, g)
			}
		}
		out = append(out, rec.G)
	}
	slices.Sort(out) // chunks of two answers may have come in turns
	return out, nil
}
