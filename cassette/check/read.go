package check

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

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
