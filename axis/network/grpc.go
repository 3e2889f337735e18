package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// callSlack is how much longer than while recording a call waits for its program.
const callSlack = 2 * time.Second

// call records or answers a gRPC call, whose body is passed on as it comes. An error means that the program's stream must be reset.
func (s *Server) call(w http.ResponseWriter, r *http.Request, to *url.URL, asker uint64) error {
	req := &exchange.Request{Method: r.Method, URL: to.String(), Header: r.Header, Asker: asker, Opener: connOf(r.Context()).openedBy(s.cfg.Opener)}
	in := newIncoming(r.Body, s.cfg.MaxBody)
	if s.cfg.Book != nil {
		go in.readAll() // ends with the handler at the latest, for its body does
		return s.replayCall(w, r, req, to, in)
	}
	o, err := s.cfg.Tap.BeginStream(req)
	if err != nil {
		return err
	}
	return s.relayCall(w, r, o, s.up.fetchCall(r, req, in, to), in)
}

// relayCall passes the answer of a call on.
func (s *Server) relayCall(w http.ResponseWriter, r *http.Request, o *exchange.Open, a *answer, in *incoming) error {
	a.asked = in
	return s.relay(w, r, o, a)
}

// replayCall answers a call from the tape. One whose like was never answered before it had been sent is waited for and is then a request
// as any other.
func (s *Server) replayCall(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, in *incoming) error {
	streams, eager, patience := s.cfg.Tap.Calls(s.cfg.Book, req, callSlack)
	steps := 1
	switch {
	case !streams:
		steps = int(^uint(0) >> 1) // until its end
	case eager:
		steps = 0
	}
	if _, err := in.await(r.Context(), steps, patience); err != nil {
		return err
	}
	if !streams {
		req.Body = in.body()
		return s.exchange(w, r, req, to, nil)
	}
	if !eager {
		req.Body = exchange.FirstMessage(in.body())
	}
	o, err := s.cfg.Tap.BeginStream(req)
	if err != nil {
		return err
	}
	a := s.replayed(r, req, to.Host, o)
	if body, ok := a.body.(playedBody); ok {
		p := &pacedCall{body: body.AnswerBody, in: in, o: o, patience: patience}
		if p.pace, p.splits = s.cfg.Book.PaceOf(o.Recorded()); p.splits && s.cfg.Reveal != nil {
			p.reveal = s.cfg.Reveal
		}
		if err := p.begin(r.Context()); err != nil {
			return s.relayCall(w, r, o, s.turnedDown(o, a, err), in)
		}
		a.body, a.prompt, a.ends = p, a.prompt && p.pace.Head() == p.pace.Chunk(0), p
	}
	return s.relayCall(w, r, o, a, in)
}

// turnedDown is the answer to a call that differed before anything of the recorded answer was given.
func (s *Server) turnedDown(o *exchange.Open, a *answer, err error) *answer {
	a.body.Close()
	var other *otherCall
	if !errors.As(err, &other) {
		return dead(err)
	}
	o.TurnDown(other.why)
	return grpcRefusal(exchange.Refusal(o.Request(), other.why))
}

// grpcRefusal is an answer of our own to a call: no client tries FAILED_PRECONDITION again.
func grpcRefusal(message string) *answer {
	h := http.Header{"Content-Type": {"application/grpc"}}
	refuseGRPC(h, message)
	return &answer{status: http.StatusOK, header: h, trails: true}
}

func refuseGRPC(h http.Header, message string) {
	h["Grpc-Status"] = []string{"9"}
	h["Grpc-Message"] = []string{grpcMessage(message)}
}

// grpcMessage encodes a text as grpc-message holds it: what is not printable ASCII, and "%", in percent signs.
func grpcMessage(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// otherCall says that a call went on otherwise than the recorded one.
type otherCall struct{ why string }

func (e *otherCall) Error() string { return e.why }

// A pacedCall gives a recorded answer while its request comes: what came then after so many messages comes after as many now.
type pacedCall struct {
	body     *exchange.AnswerBody
	in       *incoming
	o        *exchange.Open
	pace     *exchange.Pace
	splits   bool                // the recorded request is known message by message
	reveal   func([]byte) []byte // nil for none
	patience time.Duration
	inVain   bool // what was waited for did not come
	at       int  // in the request: behind the messages that were compared
	compared int
}

// begin waits for the head.
func (p *pacedCall) begin(ctx context.Context) error { return p.await(ctx, p.pace.Head()) }

// Next implements body.
func (p *pacedCall) Next(ctx context.Context) ([]byte, error) {
	if !p.body.Within() {
		err := p.await(ctx, p.pace.Chunk(p.body.Begun()))
		if err != nil {
			return nil, err
		}
	}
	b, err := p.body.Next(ctx)
	if errors.Is(err, io.EOF) {
		err = p.end(ctx)
	}
	return b, err
}

// Close implements body.
func (p *pacedCall) Close() error { return p.body.Close() }

// await waits for so many steps of the request, unless that has been in vain, and compares what came.
func (p *pacedCall) await(ctx context.Context, steps int) error {
	for at := min(p.in.steps()+1, steps); at <= steps && !p.inVain; at++ { // step by step: what differs is told at once
		came, err := p.in.await(ctx, at, p.patience)
		if err != nil {
			return err
		}
		p.inVain = !came
		if err := p.compare(); err != nil {
			return err
		}
	}
	return p.compare()
}

// compare compares the messages that came with the recorded ones.
func (p *pacedCall) compare() error {
	if !p.splits {
		return nil
	}
	rest := p.in.body()[p.at:]
	for m := exchange.FirstMessage(rest); m != nil; m = exchange.FirstMessage(rest) {
		rest, p.at = rest[len(m):], p.at+len(m)
		p.compared++
		switch i := p.compared - 1; {
		case i >= len(p.pace.Messages) && !p.pace.Ended:
		case i >= len(p.pace.Messages):
			return &otherCall{fmt.Sprintf("message %d of the call is one more than were recorded", p.compared)}
		case !p.same(p.pace.Messages[i], m):
			return &otherCall{fmt.Sprintf("message %d of the call is another than was recorded", p.compared)}
		}
	}
	return nil
}

func (p *pacedCall) same(was, now []byte) bool {
	return p.o.Alike(was, now) || p.reveal != nil && p.o.Alike(p.reveal(was), now)
}

// end waits for what had come by the end of the answer, and judges the whole request. Its error is io.EOF for one that is the recorded one.
func (p *pacedCall) end(ctx context.Context) error {
	if err := p.await(ctx, p.pace.End()); err != nil {
		return err
	}
	switch came, want := p.in.steps(), p.pace.End(); {
	case p.pace.Ended && p.splits && came != want, came < want:
		return &otherCall{fmt.Sprintf("of the call came %d messages and ends where %d were recorded", came, want)}
	}
	return io.EOF
}

// recorded is the request as it stands on the replay's tape: of one that was recorded up to where its answer ended, as much.
func (p *pacedCall) recorded(body []byte) []byte {
	if p.pace.Ended {
		return body
	}
	rest := body
	for range p.pace.Messages {
		rest = rest[len(exchange.FirstMessage(rest)):]
	}
	return body[:len(body)-len(rest)]
}
