package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// callSlack is how much longer than while recording a call waits for its program.
const callSlack = 2 * time.Second

// call records or answers a gRPC call, whose body is passed on as it comes. An error means that the program's stream must be reset.
func (s *handler) call(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL) error {
	in := &incoming{r: r.Body, limit: s.cfg.MaxBody}
	past := s.cfg.Fork.past()
	if s.tape != nil && !past {
		go in.readAll() // ends with the handler at the latest, for its body does
		return s.replayCall(w, r, req, to, in)
	}
	o, err := s.cfg.Tap.BeginStream(req)
	if err == nil && past {
		err = o.SendOn()
	}
	if err != nil {
		return err
	}
	return relayAnswer(s.log, w, r, o, s.up.fetch(r, req, in, to))
}

// replayCall answers a call from the tape. One whose like was never answered before it had been sent is waited for and is then a request
// as any other.
func (s *handler) replayCall(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, in *incoming) error {
	streams, eager, patience := s.cfg.Tap.Calls(s.tape.Book, req, callSlack)
	steps := 1
	switch {
	case !streams:
		steps = int(^uint(0) >> 1) // until its end
	case eager:
		steps = 0
	}
	if err := in.await(r.Context(), steps, patience); err != nil {
		return err
	}
	if !streams {
		req.Body, _ = in.sofar()
		return s.exchange(w, r, req, to, nil)
	}
	if !eager {
		body, _ := in.sofar()
		req.Body = exchange.FirstMessage(body)
	}
	o, err := s.cfg.Tap.BeginStream(req)
	if err != nil {
		return err
	}
	var a *answer
	if s.fork == nil {
		a = s.tape.replayed(r, req, to.Host, o)
	} else if a = s.fork.answer(r, req, to, o); a == nil { // it has been read by now, and cannot be passed on as it comes
		a = grpcRefusal("tapedeck: the fork leaves the tape here: ask again")
	}
	if body, ok := a.body.(playedBody); ok {
		p := &callBody{Body: body.AnswerBody, in: in, patience: patience, was: s.tape.Book.CallOf(o.Recorded())}
		a.body, a.ends = p, p
	}
	a.asked = in
	return relayAnswer(s.log, w, r, o, a)
}

// grpcRefusal is an answer of our own to a call: no client tries FAILED_PRECONDITION again.
func grpcRefusal(message string) *answer {
	h := http.Header{"Content-Type": {"application/grpc"}, "Grpc-Status": {"9"}, "Grpc-Message": {grpcMessage(message)}}
	return &answer{status: http.StatusOK, header: h, trails: true}
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

// A callBody gives a recorded answer to a call that goes on: at once, but for its end, which waits for as much of the call as had come by
// then. What came compares as any request does.
type callBody struct {
	exchange.Body
	in       *incoming
	was      exchange.Call
	patience time.Duration
}

// Next implements body.
func (p *callBody) Next(ctx context.Context) ([]byte, error) {
	b, err := p.Body.Next(ctx)
	if err != nil && ctx.Err() == nil {
		if gone := p.in.await(ctx, p.was.Steps, p.patience); gone != nil {
			err = gone
		}
	}
	return b, err
}

// recorded is the request as it stands on the replay's tape: of one that was recorded up to where its answer ended, as much.
func (p *callBody) recorded(body []byte) []byte {
	if p.was.Ended {
		return body
	}
	rest := body
	for range p.was.Steps {
		rest = rest[len(exchange.FirstMessage(rest)):]
	}
	return body[:len(body)-len(rest)]
}

// An incoming is the body of a gRPC call that is kept while it comes. It may be used by several goroutines at once, read by one.
type incoming struct {
	r     io.ReadCloser
	limit int64 // bytes

	mu       sync.Mutex
	kept     []byte
	at       int // in kept: behind the last whole message
	messages int
	ended    bool // by its end, not by an error
	over     bool // nothing more comes
	changed  lane.Change
}

// Read implements io.Reader. What it gives has been kept.
func (in *incoming) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if int64(len(in.kept)+n) > in.limit {
		n, err = 0, fmt.Errorf("the request's body is longer than %d bytes, which is the most that is recorded", in.limit)
	}
	in.kept = append(in.kept, p[:n]...)
	for m := exchange.FirstMessage(in.kept[in.at:]); m != nil; m = exchange.FirstMessage(in.kept[in.at:]) {
		in.at += len(m)
		in.messages++
	}
	in.ended = in.ended || errors.Is(err, io.EOF)
	in.over = in.over || err != nil
	in.changed.Happened()
	return n, err
}

// Close implements io.Closer: a Read under way ends. Whoever sends the body on waits for that once its answer is over.
func (in *incoming) Close() error { return in.r.Close() }

// readAll reads until nothing more comes.
func (in *incoming) readAll() {
	for buf := make([]byte, readSize); ; {
		if _, err := in.Read(buf); err != nil {
			return
		}
	}
}

// steps is how many messages have come, and one more once the end has.
func (in *incoming) steps() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stepsLocked()
}

func (in *incoming) stepsLocked() int {
	if in.ended {
		return in.messages + 1
	}
	return in.messages
}

// cameBefore reports whether all of the request had come after so many steps.
func (in *incoming) cameBefore(steps int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended && steps > in.messages
}

// sofar is what has come by now, and how many steps it is.
func (in *incoming) sofar() (body []byte, steps int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return bytes.Clone(in.kept), in.stepsLocked()
}

// await waits for so many steps, for limit at most after the last time that something came; an incoming of which nothing more comes
// is waited for no longer. The error is ctx's where that is done before.
func (in *incoming) await(ctx context.Context, steps int, limit time.Duration) error {
	late := false
	return lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.stepsLocked() >= steps || in.over || late {
			return nil, 0
		}
		return in.changed.Next(), limit
	}, func() { late = true })
}
