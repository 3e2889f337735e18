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
func (s *handler) call(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL) error {
	in := &incoming{r: r.Body, limit: s.cfg.MaxBody}
	switch {
	case s.cfg.Fork.past():
		return s.forkedCall(w, r, req, to, in)
	case s.tape != nil:
		go in.readAll() // ends with the handler at the latest, for its body does
		return s.replayCall(w, r, req, to, in)
	}
	o, err := s.cfg.Tap.BeginStream(req)
	if err != nil {
		return err
	}
	return s.relayCall(w, r, o, s.up.fetch(r, req, in, to), in)
}

// relayCall passes the answer of a call on.
func (s *handler) relayCall(w http.ResponseWriter, r *http.Request, o *exchange.Open, a *answer, in *incoming) error {
	a.asked = in
	return s.relay(w, r, o, a)
}

// replayCall answers a call from the tape. One whose like was never answered before it had been sent is waited for and is then a request
// as any other.
func (s *handler) replayCall(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, in *incoming) error {
	streams, eager, patience := s.cfg.Tap.Calls(s.tape.book, req, callSlack)
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
	a := s.replayedCall(r, req, to, o)
	if body, ok := a.body.(playedBody); ok {
		p := &callBody{body: body.AnswerBody, in: in, o: o, patience: patience, was: s.tape.book.CallOf(o.Recorded()), reveal: s.tape.reveal}
		a.body, a.ends = p, p
	}
	return s.relayCall(w, r, o, a, in)
}

// replayedCall is what a call gets of the tape. One that comes to the point of a fork is refused: it has been read by now, and cannot be
// passed on as it comes.
func (s *handler) replayedCall(r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) *answer {
	if s.cfg.Fork == nil {
		return s.tape.replayed(r, req, to.Host, o)
	}
	if a := s.forked(r, req, to, o); a != nil {
		return a
	}
	return grpcRefusal("tapedeck: the fork leaves the tape here: ask again")
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

// A callBody gives a recorded answer to a call that goes on: at once, but for its end, which waits for as much of the call as had come by
// then, and judges that.
type callBody struct {
	body     *exchange.AnswerBody
	in       *incoming
	o        *exchange.Open
	was      *exchange.Call
	reveal   func([]byte) []byte // nil for none
	patience time.Duration
	at       int // in the request: behind the messages that were compared
	compared int
}

// Next implements body.
func (p *callBody) Next(ctx context.Context) ([]byte, error) {
	b, err := p.body.Next(ctx)
	if err != nil && ctx.Err() == nil {
		if other := p.judge(ctx, errors.Is(err, io.EOF)); other != nil {
			err = other
		}
	}
	return b, err
}

// Close implements body.
func (p *callBody) Close() error { return p.body.Close() }

// judge waits for what had come of the call by the end of its answer, and compares it: message by message, so that what differs is told
// at once. How many messages came counts where the answer is whole. The error is an *otherCall, or ctx's.
func (p *callBody) judge(ctx context.Context, whole bool) error {
	came := true
	for step := 1; came && step <= p.was.Steps; step++ {
		var err error
		if came, err = p.in.await(ctx, step, p.patience); err != nil {
			return err
		}
		if err := p.compare(); err != nil {
			return err
		}
	}
	if err := p.compare(); err != nil {
		return err
	}
	if came, want := p.in.steps(), p.was.Steps; whole && (came < want || p.was.Ended && p.was.Messages != nil && came > want) {
		return &otherCall{fmt.Sprintf("of the call came %d messages and ends where %d were recorded", came, want)}
	}
	return nil
}

// compare compares the messages that came with the recorded ones.
func (p *callBody) compare() error {
	rest := p.in.body()[p.at:]
	for m := exchange.FirstMessage(rest); m != nil && p.was.Messages != nil; m = exchange.FirstMessage(rest) {
		rest, p.at = rest[len(m):], p.at+len(m)
		p.compared++
		switch i := p.compared - 1; {
		case i >= len(p.was.Messages) && !p.was.Ended:
		case i >= len(p.was.Messages):
			return &otherCall{fmt.Sprintf("message %d of the call is one more than were recorded", p.compared)}
		case !p.same(p.was.Messages[i], m):
			return &otherCall{fmt.Sprintf("message %d of the call is another than was recorded", p.compared)}
		}
	}
	return nil
}

func (p *callBody) same(was, now []byte) bool {
	return p.o.Alike(was, now) || p.reveal != nil && p.o.Alike(p.reveal(was), now)
}

// recorded is the request as it stands on the replay's tape: of one that was recorded up to where its answer ended, as much.
func (p *callBody) recorded(body []byte) []byte {
	if p.was.Ended {
		return body
	}
	rest := body
	for range p.was.Messages {
		rest = rest[len(exchange.FirstMessage(rest)):]
	}
	return body[:len(body)-len(rest)]
}
