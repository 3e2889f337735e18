package check

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// An event is one thing of a cassette, in the form that assertions take it in.
type event struct {
	kind    eventKind
	seq     int64
	t       time.Duration
	bytes   []byte // of output and input
	key     string // of input, where the recorder knew it
	size    size   // of a resize
	signal  string
	payload []byte // of a service event
}

type eventKind uint8

const (
	isOutput eventKind = iota + 1
	isInput
	isResize
	isSignal
	isService
)

// An ending is what is known when the last event has been seen.
type ending struct {
	end     time.Duration // how long the session is
	whole   bool          // the recording was finished; else nothing is known of the program's end
	process process
	context *recent
	moments int // screens
}

// A process is how the program ended.
type process struct {
	code     int
	exited   bool
	signaled bool
	signal   string
	err      string
	timedOut bool
}

// A moment is when a screen came to stand: 0 and 0 for the blank one at the start.
type moment struct {
	seq int64
	t   time.Duration
}

// A showing is one screen while it stands: from its own moment to the next one's.
type showing struct {
	view             *view
	prev, self, next *moment // nil: there is none
	iv               interval
	context          *recent
}

// An interval is the time for which a screen stood. The last one stands at the end, too.
type interval struct {
	from, to time.Duration
	last     bool
}

// meets tells whether the screen stood at some time of s.
func (iv interval) meets(s span) bool {
	if s.To >= 0 && iv.from > s.To {
		return false
	}
	return iv.to > s.From || iv.from >= s.From || iv.last && iv.to >= s.From
}

// covers tells whether the screen is the one that stood at t.
func (iv interval) covers(t time.Duration) bool {
	return iv.from <= t && (t < iv.to || iv.last && t <= iv.to)
}

// clip returns the part of the interval that lies in s.
func (iv interval) clip(s span) (from, to time.Duration) {
	from, to = max(iv.from, s.From), iv.to
	if s.To >= 0 {
		to = min(to, s.To)
	}
	return from, max(from, to)
}

// A probe looks at a cassette for one assertion. It is called in the order of events.
type probe interface {
	screen(sh *showing) // each screen once, when its end is known
	event(e *event, x *recent)
	finish(end *ending) verdict
	over() bool // the verdict cannot change any more
}

// A verdict is what came of an assertion.
type verdict struct {
	status       Status
	wanted, came string
	evidence     *Evidence
}

// engine drives all probes over one cassette in one pass.
type engine struct {
	vt        *vt.Screen
	view      *view
	probes    []probe
	sightings []*sightings
	text      *stripper // nil where nobody asks for it
	recent    *recent
	prev      *moment
	self      moment
	moments   int
	looking   bool // some probe still wants screens
}

func newEngine(at size, probes []probe, seen []*sightings, masks masker) *engine {
	s := vt.New(&vt.Options{Rows: at.Rows, Cols: at.Cols})
	g := &engine{vt: s, view: newView(s, masks), probes: probes, sightings: seen, recent: new(recent), looking: true, moments: 1}
	if len(seen) > 0 {
		g.text = newStripper()
	}
	return g
}

// take gives one event to all probes.
func (g *engine) take(e *event) {
	draws := e.kind == isOutput || e.kind == isResize
	if draws {
		g.stand(&moment{e.seq, e.t}, e.t, false)
	}
	switch e.kind {
	case isOutput:
		_, _ = g.vt.Write(e.bytes) // a screen takes everything
	case isResize:
		g.vt.Resize(e.size.Rows, e.size.Cols)
	}
	if draws {
		g.view.fresh()
		g.prev, g.self = &moment{g.self.seq, g.self.t}, moment{e.seq, e.t}
		g.moments++
	}
	g.sight(e, draws)
	g.recent.add(e)
	for _, p := range g.probes {
		if !p.over() {
			p.event(e, g.recent)
		}
	}
}

// stand tells the probes of the screen as it is, which stood until to.
func (g *engine) stand(next *moment, to time.Duration, last bool) {
	if !g.looking {
		return
	}
	sh := showing{view: g.view, prev: g.prev, self: &g.self, next: next,
		iv: interval{g.self.t, max(g.self.t, to), last}, context: g.recent}
	g.looking = false
	for _, p := range g.probes {
		if !p.over() {
			p.screen(&sh)
			g.looking = true
		}
	}
}

// sight tells who waits for texts of new ones.
func (g *engine) sight(e *event, draws bool) {
	if g.text == nil || !draws {
		return
	}
	var fresh []byte
	if e.kind == isOutput {
		fresh = g.text.strip(e.bytes)
	}
	for _, s := range g.sightings {
		s.look(g.text, fresh, g.view, moment{e.seq, e.t})
	}
}

// finish tells the probes of the end and returns their verdicts, in their order.
func (g *engine) finish(end *ending) []verdict {
	end.end = max(end.end, g.self.t)
	end.context, end.moments = g.recent, g.moments
	g.stand(nil, end.end, true)
	out := make([]verdict, len(g.probes))
	for i, p := range g.probes {
		out[i] = p.finish(end)
	}
	return out
}

// read gives the events of r to the engine.
func (g *engine) read(ctx context.Context, r *cassette.Reader) (*ending, error) {
	streams := []cassette.Stream{cassette.StreamInput, cassette.StreamOutput, cassette.StreamService}
	var last time.Duration
	for e, err := range r.Events(&cassette.EventsOptions{Streams: streams}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if x, ok := eventOf(e); ok {
			g.take(&x)
			last = x.t
		}
	}
	return endingOf(r, last), nil
}

// eventOf returns what assertions see of e.
func eventOf(e *cassette.Event) (event, bool) {
	x := event{seq: int64(e.Seq), t: e.Time()}
	switch {
	case e.Chunk != nil:
		x.kind, x.bytes = isOutput, e.Bytes
	case e.Service != nil:
		x.kind, x.payload = isService, e.Service.Payload
	case e.Input == nil:
		return x, false
	case e.Input.Kind == cassette.KindResize && e.Input.Size != nil:
		x.kind, x.size = isResize, size(*e.Input.Size)
	case e.Input.Kind == cassette.KindSignal:
		x.kind, x.signal = isSignal, e.Input.Signal
	case e.Input.Kind == cassette.KindInput:
		x.kind, x.bytes, x.key = isInput, e.Input.Bytes, e.Input.Key
	default:
		return x, false
	}
	return x, true
}

// endingOf returns what is known of the end; last is the time of the last event.
func endingOf(r *cassette.Reader, last time.Duration) *ending {
	end := &ending{end: last}
	f := r.Final()
	if f == nil {
		return end
	}
	end.whole = true
	end.end = max(last, f.Time(), f.Duration())
	if x := f.Exit; x != nil {
		end.process = process{code: x.Code, exited: x.Exited, signaled: x.Signaled, signal: x.Signal, err: errText(x.Err)}
	}
	end.process.timedOut = timedOut(r.Manifest().Command.TimeoutMS, f, &end.process)
	return end
}

// errText returns what an exit's Err says, which is any JSON.
func errText(b json.RawMessage) string {
	var s string
	if len(b) == 0 || string(b) == "null" || string(b) == "{}" {
		return ""
	}
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	return shorten(s, maxPayload)
}

// timedOut tells whether the program's time was up: the recorder said so, or something ended it after the time that it had.
func timedOut(limit int64, f *cassette.Final, p *process) bool {
	var m struct {
		TimedOut bool `json:"timed_out"`
		Timeout  bool `json:"timeout"`
	}
	if json.Unmarshal(f.Metadata, &m) == nil && (m.TimedOut || m.Timeout) {
		return true
	}
	said := strings.ToLower(p.err)
	for _, word := range []string{"timeout", "timed out", "deadline exceeded"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return limit > 0 && p.signaled && max(f.DurationMS, f.TMS) >= limit
}
