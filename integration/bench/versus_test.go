package bench

import (
	"context"
	"fmt"
	"net/http"
)

// A peer starts a server that is asked the same as a replay.
type peer func(ctx context.Context, e *env) (*server, error)

// versus is a source: the pace of a replay by that of a peer, under the same load.
type versus struct {
	bytes  int // of a request's body
	long   int // requests that count in a round
	short  int // the same of a short run
	peer   peer
	called string           // the peer
	answer string           // names what the replay's recording was answered with
	gives  http.HandlerFunc // answers while recording
	same   string           // what is the same on both sides, for people
}

// versusNote says what is the same in all of them.
var versusNote = fmt.Sprintf("all of `replay/` but `realtime`: our side is `tapedeck replay --proxy` of the load generator, which asks "+
	"through it as its HTTP proxy; the peer is asked by the same load generator, directly. Plain HTTP/1.1 on the loopback, no streaming, "+
	"one server process each, %d connections kept alive, %d different requests in turn, %d requests before those that count; both sides "+
	"in turn, the median of the rounds. The figure is our requests a second by the peer's", conns, variants, warm)

// warm is how many requests a server gets before those that count: enough for compilers that watch first.
const warm = 200

// conns is how many connections a load keeps alive.
const conns = 8

func (v versus) load(e *env) load {
	return load{Bytes: v.bytes, Warm: pick(e, warm, variants), Requests: pick(e, v.long, v.short), Conns: conns}
}

func (v versus) how(short bool) string {
	n, m := v.long, rounds
	if short {
		n, m = v.short, 1
	}
	return fmt.Sprintf("against %s; %s; requests that count in a round: %d, rounds: %d", v.called, v.same, n, m)
}

func (v versus) measure(ctx context.Context, e *env) (reading, error) {
	var ratios []float64
	var ours, theirs paces
	for i := range pick(e, rounds, 1) {
		a, b, err := v.round(ctx, e, i%2 == 1)
		if err != nil {
			return reading{}, err
		}
		ratios, ours, theirs = append(ratios, a.Rate/b.Rate), append(ours, a), append(theirs, b)
	}
	return reading{value: median(ratios), beside: fmt.Sprintf("%s against %s", ours, theirs)}, nil
}

// paces are those of the rounds.
type paces []*pace

// String tells the medians.
func (ps paces) String() string {
	var rates, p50s, p99s []float64
	for _, p := range ps {
		rates, p50s, p99s = append(rates, p.Rate), append(p50s, p.P50), append(p99s, p.P99)
	}
	return fmt.Sprintf("%s requests/s, p50 %s ms, p99 %s ms", count(median(rates)), figure(median(p50s)), figure(median(p99s)))
}

// round asks both once, the peer first where turned is set.
func (v versus) round(ctx context.Context, e *env, turned bool) (ours, theirs *pace, err error) {
	if turned {
		if theirs, err = v.askPeer(ctx, e); err != nil {
			return nil, nil, err
		}
	}
	if ours, err = e.replayLoad(ctx, v.load(e), v.answer, v.gives); err != nil {
		return nil, nil, err
	}
	if !turned {
		theirs, err = v.askPeer(ctx, e)
	}
	return ours, theirs, err
}

func (v versus) askPeer(ctx context.Context, e *env) (*pace, error) {
	s, err := v.peer(ctx, e)
	if err != nil {
		return nil, err
	}
	p, err := e.sendLoad(ctx, s, v.load(e))
	if errStop := s.stop(); err == nil {
		err = errStop
	}
	return p, err
}
