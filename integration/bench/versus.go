package main

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
	return fmt.Sprintf("`tapedeck replay --proxy` of the load generator (an HTTP proxy on the loopback, plain HTTP) by %s; %s; "+
		"one process each, %d connections kept alive, %d different requests in turn, %d that count after a warm-up; median of rounds: %d",
		v.called, v.same, conns, variants, n, m)
}

func (v versus) measure(ctx context.Context, e *env) (reading, error) {
	var ratios, ours, theirs []float64
	var last [2]*pace
	for i := range pick(e, rounds, 1) {
		a, b, err := v.round(ctx, e, i%2 == 1)
		if err != nil {
			return reading{}, err
		}
		ratios, ours, theirs, last = append(ratios, a.Rate/b.Rate), append(ours, a.Rate), append(theirs, b.Rate), [2]*pace{a, b}
	}
	return reading{median(ratios), fmt.Sprintf("%s requests/s against %s; p99 %s ms against %s",
		count(median(ours)), count(median(theirs)), figure(last[0].P99), figure(last[1].P99))}, nil
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
