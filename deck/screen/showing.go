package screen

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// showing reads what a terminal showed whenever something was typed, and at the end. What came of the network meanwhile is on the
// tape, whose records are those. The error is that of either.
func showing(c *cassette.Reader, records iter.Seq2[*tape.Record, error]) (*fidelity.Showing, error) {
	causes, err := causesOn(records)
	if err != nil {
		return nil, err
	}
	m := c.Manifest().Terminal
	s := &shower{track: NewTracker(m.InitialRows, m.InitialCols), causes: causes, out: new(fidelity.Showing)}
	streams := []cassette.Stream{cassette.StreamInput, cassette.StreamOutput, cassette.StreamFinal}
	for e, err := range c.Events(&cassette.EventsOptions{Streams: streams}) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Dir(), err)
		}
		s.event(e)
	}
	return s.out, nil
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
		s.out.History = s.track.history()
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
