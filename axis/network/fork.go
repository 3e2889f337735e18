package network

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Fork says what becomes of a request past the point at which a run leaves the tape of its Book.
type Fork struct {
	At *exchange.Fork
	// Live lets such requests go to their upstreams. Without it they are refused.
	Live bool
	// Answer, where it is not nil, makes the answer to the first request past the point of the conversation that is forked: no upstream is
	// asked for it.
	Answer func(asked *Asked) (*Made, error)
	// Change, where it is not nil, makes of a request what leaves in its place, and what its record says of that.
	Change func(asked *Asked) (*exchange.Request, []tape.Field, error)
}

// An Asked is a request past the point: as the program sent it, secrets and all, and what is known of it.
type Asked struct {
	*exchange.Request
	*exchange.Identity
	Own bool // it is of the conversation that is forked
}

// A Made is an answer that nobody gave.
type Made struct {
	Header http.Header
	Chunks [][]byte
}

// errNotForked is the type of the error that a request gets which the fork could not change.
const errNotForked = "not_forked"

// sentOn is what a request gets that the tape does not answer: from its upstream, recording, and past the point of a fork.
func (s *handler) sentOn(r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open, denied *denial) *answer {
	if denied != nil {
		return localAnswer(o.Identity(), denied.status, denied.kind, denied.message)
	}
	if s.tape == nil {
		return s.up.fetch(r, req, nil, to)
	}
	if c, ok := o.Passage().(exchange.Live); ok {
		switch res, ok, err := c.Send(r.Context(), s.asks); {
		case err != nil:
			return dead(err)
		case ok:
			return answerOf(res, trailing(r))
		}
	}
	if s.cfg.Fork.Change == nil {
		return s.up.fetch(r, req, nil, to)
	}
	changed, note, err := s.cfg.Fork.Change(s.asked(req, o))
	if err == nil {
		to, err = url.Parse(changed.URL)
	}
	if err != nil {
		return localAnswer(o.Identity(), http.StatusBadRequest, errNotForked, "tapedeck: the request cannot be changed: "+err.Error())
	}
	if o.Note(note...); len(note) > 0 && s.tape.reveal != nil { // what was changed may hold placeholders of the recording
		changed.Body = s.tape.reveal(changed.Body)
	}
	return s.up.fetch(r, changed, nil, to)
}

func (s *handler) asked(req *exchange.Request, o *exchange.Open) *Asked {
	return &Asked{Request: req, Identity: o.Identity(), Own: s.cfg.Fork.At.Own(o.Lane())}
}

// forked is what a request gets in a fork; nil where its upstream is to be asked.
func (s *handler) forked(r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) *answer {
	f := s.cfg.Fork
	rec, place := o.TakeFork(f.At)
	switch {
	case rec != nil:
		return s.goesOn(o, s.tape.recorded(r, o, rec))
	case place == exchange.Past && !f.Live && !isGRPC(r) && !s.tape.book.DeadHost(to.Host):
		_, why := s.tape.book.Nearest(o.Identity(), o.Request())
		if err := f.At.Refuse(o); err != nil {
			return dead(err)
		}
		return localAnswer(o.Identity(), exchange.RefusedStatus, exchange.NotOnTape, exchange.Refusal(req, why))
	case place == exchange.Before || place == exchange.Past && !f.Live:
		return s.tape.refused(r, req, to.Host, o)
	}
	if err := o.SendOn(); err != nil {
		return dead(err)
	}
	if place != exchange.At || f.Answer == nil {
		return nil
	}
	made, err := f.Answer(s.asked(req, o))
	if err != nil {
		return localAnswer(o.Identity(), http.StatusBadRequest, errNotForked, "tapedeck: the answer cannot be given: "+err.Error())
	}
	if s.tape.reveal != nil {
		for i, chunk := range made.Chunks {
			made.Chunks[i] = s.tape.reveal(chunk)
		}
	}
	return &answer{status: http.StatusOK, header: made.Header, length: -1, body: &pieces{made.Chunks}}
}

// goesOn is an answer of the tape that may go on past the point.
func (s *handler) goesOn(o *exchange.Open, a *answer) *answer {
	c, ok := o.Passage().(exchange.Live)
	if !ok || a.body == nil || s.up == nil {
		return a
	}
	if on := c.GoOn(a.body, s.asks); on != nil {
		a.body, a.passes, a.length = on, false, -1
	}
	return a
}

// asks sends a request on for a conversation, until ctx or the Server ends.
func (s *handler) asks(ctx context.Context, req *exchange.Request) (*http.Response, error) {
	to, err := url.Parse(req.URL)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	outlives := context.AfterFunc(s.ctx, stop)
	end := func() { outlives(); stop() }
	res, err := s.up.send(ctx, req, to, sending{})
	if err != nil {
		end()
		return nil, err
	}
	res.Body = &askedBody{res.Body, end}
	return res, nil
}

// An askedBody is the body of what a request of a conversation got: its end releases what the request held.
type askedBody struct {
	io.ReadCloser
	end func()
}

func (b *askedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// takeSocket hands out what answers a request for a WebSocket. Past the point of a fork none is opened.
func (s *handler) takeSocket(o *exchange.Open) (*exchange.Recorded, bool) {
	if s.cfg.Fork == nil {
		return o.Take(s.tape.book)
	}
	rec, _ := o.TakeFork(s.cfg.Fork.At)
	return rec, rec != nil
}

// past reports whether what comes now goes to its upstream.
func (f *Fork) past() bool { return f != nil && f.Live && f.At.Past() }

// forkedCall answers a gRPC call that comes past the point.
func (s *handler) forkedCall(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, in *incoming) error {
	o, err := s.cfg.Tap.BeginStream(req)
	if err == nil {
		err = o.SendOn()
	}
	if err != nil {
		return err
	}
	return s.relay(w, r, o, s.up.fetch(r, req, in, to))
}
