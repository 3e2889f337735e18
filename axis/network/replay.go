package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// cancelPatience is how long at least the replay of an answer that the program had cancelled waits for it to do so again
// (Recorded.Patience).
const cancelPatience = 10 * time.Second

// A taped answers requests from a tape.
type taped struct {
	*Config
	log *slog.Logger
}

// replayed decides what a request gets from the tape. It never resolves and never dials.
func (t *taped) replayed(r *http.Request, req *exchange.Request, host string, o *exchange.Open) *answer {
	if rec, ok := o.Take(t.Book); ok {
		return t.recorded(r, o, rec)
	}
	return t.refused(r, req, host, o)
}

// errDeadHost ends a request to a host that was silent.
var errDeadHost = errors.New("no upstream answered for this host while recording")

// refused is what a request gets that nothing on the tape answers.
func (t *taped) refused(r *http.Request, req *exchange.Request, host string, o *exchange.Open) *answer {
	if t.Book.DeadHost(host) {
		return dead(errDeadHost)
	}
	_, why := t.Book.Nearest(o.Identity(), o.Request())
	if own := o.Refuse(why); own != nil { // the conversation that it belongs to answers
		return &answer{status: own.Status, header: own.Header, length: int64(len(own.Body)), body: whole(own.Body)}
	}
	if isGRPC(r) {
		return grpcRefusal(exchange.Refusal(req, why))
	}
	return localAnswer(o.Identity(), exchange.RefusedStatus, exchange.NotOnTape, exchange.Refusal(req, why))
}

// streamPatience is how long a stream of events that the program had ended stays open for it to do so again: a conversation goes on
// in other exchanges meanwhile.
const streamPatience = 7 * 24 * time.Hour

// recorded is the answer that an exchange of the tape holds. The Book is told of one that is damaged.
func (t *taped) recorded(r *http.Request, x *exchange.Open, rec *exchange.Recorded) *answer {
	ctx, ex := r.Context(), rec.Exchange
	damage := func(err error) {
		t.log.Error("recorded answer cannot be given", "seq", rec.Seq, "url", ex.URL, "error", err)
		t.Book.Damage(rec, err)
	}
	o := exchange.AnswerOptions{Speed: t.Speed, Patience: rec.Patience(cancelPatience), Of: rec, Held: x.Held, Reveal: t.Reveal}
	o.Damage = func(err error) error {
		damage(err)
		return fmt.Errorf("recorded answer is damaged: %w", err)
	}
	if ex.Status < 200 {
		return dead(exchange.CutAgain(ctx, ex.Error, &o))
	}
	h := exchange.HeaderOf(ex.ResponseHeaders)
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	stream := kind == "text/event-stream" && x.Passage() != nil && x.Passage().Known()
	if stream && ex.Method == http.MethodGet {
		o.Patience = streamPatience
	}
	size, same := t.look(ex, &o)
	b, err := exchange.OpenAnswer(t.Blobs, ex, &o)
	if err != nil {
		damage(err)
		message := fmt.Sprintf("tapedeck: the recorded answer of %s %s: %v", ex.Method, ex.URL, err)
		return localAnswer(x.Identity(), http.StatusBadRequest, "damaged_tape", message)
	}
	prompt := b.Prompt() && !stream
	if !prompt && !stream { // else the head waits with the first chunk
		if err := b.Begin(ctx); err != nil {
			return dead(errors.Join(err, b.Close()))
		}
	}
	a := &answer{status: ex.Status, header: h, body: playedBody{b}, prompt: prompt}
	if stream {
		a.body = b // its end may be held longer than its last chunk
	}
	a.passes = t.revealHeader(a.header) && same
	if same {
		size = b.Size()
	}
	a.length = lengthOf(a.header, rec, size)
	t.replayTrailers(a, r, rec, size)
	return a
}

// lengthOf is the length in bytes that the program is told of an answer of size bytes with the header h, where it then stands; -1
// for none, as where the size is not known and negative.
func lengthOf(h http.Header, rec *exchange.Recorded, size int64) int64 {
	if size < 0 {
		h.Del("Content-Length")
		return -1
	}
	if rec.Length == size {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	return exchange.FittingLength(h, rec.Exchange, size)
}

// A playedBody gives the last chunk of a recorded answer with its end, so that both leave at once.
type playedBody struct{ *exchange.AnswerBody }

// Next implements body.
func (b playedBody) Next(ctx context.Context) ([]byte, error) {
	p, err := b.AnswerBody.Next(ctx)
	if err == nil && b.Ended() {
		err = io.EOF
	}
	return p, err
}

// maxRevealed bounds, in bytes, the answer that is looked through before it is given.
const maxRevealed = 1 << 20

// revealHeader puts the program's own values into h, and reports whether there were none to put: a cookie must be one that
// the program can send.
func (t *taped) revealHeader(h http.Header) (same bool) {
	same = true
	if t.Reveal == nil {
		return same
	}
	for _, values := range h {
		for i, v := range values {
			if out := string(t.Reveal([]byte(v))); out != v {
				values[i], same = out, false
			}
		}
	}
	return same
}

// look looks through the body of ex for what has to be revealed. Where there is nothing, the program gets what is stored: o
// then holds the bytes, which need not be read and looked through again, and same is true. Else size is the length in bytes
// of what the program gets, -1 where the body is too long to be looked through.
func (t *taped) look(ex *tape.Exchange, o *exchange.AnswerOptions) (size int64, same bool) {
	if t.Reveal == nil || ex.Response == nil || !exchange.HasBody(ex.Method, ex.Status) {
		return 0, true
	}
	if ex.Response.Len > maxRevealed {
		return -1, false
	}
	b, err := ex.Response.Bytes(t.Blobs)
	if err != nil {
		return 0, true // whoever opens the body finds the same
	}
	if out := t.Reveal(b); !bytes.Equal(out, b) {
		return int64(len(out)), false
	}
	o.Reveal, o.Stored = nil, b
	return 0, true
}

// replayTrailers makes a, the recorded answer rec, one with trailers where it had some; size is that of its body in bytes.
func (t *taped) replayTrailers(a *answer, r *http.Request, rec *exchange.Recorded, size int64) {
	if len(rec.Trailers) > 0 {
		came := rec.Trailers.Clone()
		t.revealHeader(came)
		a.trailer, a.trails = &came, true
		return
	}
	if a.trails = trailing(r); a.trails && size == 0 && rec.Exchange.Error == "" {
		a.length = 0 // what would be trailers stands in its head, which is its end
	}
}

// handshake is the header of the recorded answer, for the key of this request, and with no more than it asks for.
func (t *taped) handshake(asked http.Header, rec *exchange.Recorded) http.Header {
	h := exchange.HeaderOf(rec.Exchange.ResponseHeaders)
	t.revealHeader(h)
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	h[wsAccept] = []string{wsframe.AcceptKey(asked.Get(wsKey))}
	if p := h.Get(wsProtocol); p != "" && items(asked[wsProtocol], func(offered string) bool { return offered == p }) == nil { // letter case counts
		h.Del(wsProtocol)
	}
	offer, was := wsframe.ParseDeflate(asked[wsExtensions]), wsframe.ParseDeflate(h[wsExtensions])
	if was.On && !offer.On || was.ClientBits && !offer.ClientBits {
		h.Del(wsExtensions)
	}
	return h
}

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

// A forking answers requests of a run that leaves its tape.
type forking struct {
	*Fork
	tape *taped
	up   *upstream       // nil unless Live
	ctx  context.Context // of the Server
}

// sentOn is what a request past the point gets that the tape does not answer: from its upstream.
func (s *forking) sentOn(r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) *answer {
	if c, ok := o.Passage().(exchange.Live); ok {
		switch res, ok, err := c.Send(r.Context(), s.asks); {
		case err != nil:
			return dead(err)
		case ok:
			return answerOf(res, trailing(r))
		}
	}
	if s.Change == nil {
		return s.up.fetch(r, req, nil, to)
	}
	changed, note, err := s.Change(s.asked(req, o))
	if err == nil {
		to, err = url.Parse(changed.URL)
	}
	if err != nil {
		return localAnswer(o.Identity(), http.StatusBadRequest, errNotForked, "tapedeck: the request cannot be changed: "+err.Error())
	}
	if o.Note(note...); len(note) > 0 && s.tape.Reveal != nil { // what was changed may hold placeholders of the recording
		changed.Body = s.tape.Reveal(changed.Body)
	}
	return s.up.fetch(r, changed, nil, to)
}

func (s *forking) asked(req *exchange.Request, o *exchange.Open) *Asked {
	return &Asked{Request: req, Identity: o.Identity(), Own: s.At.Own(o.Lane())}
}

// answer is what a request gets in a fork; nil where its upstream is to be asked.
func (s *forking) answer(r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) *answer {
	rec, place := s.At.Take(o)
	switch {
	case rec != nil:
		return s.goesOn(o, s.tape.recorded(r, o, rec))
	case place == exchange.Past && !s.Live && !isGRPC(r) && !s.tape.Book.DeadHost(to.Host):
		_, why := s.tape.Book.Nearest(o.Identity(), o.Request())
		if err := s.At.Refuse(o); err != nil {
			return dead(err)
		}
		return localAnswer(o.Identity(), exchange.RefusedStatus, exchange.NotOnTape, exchange.Refusal(req, why))
	case place == exchange.Before || place == exchange.Past && !s.Live:
		return s.tape.refused(r, req, to.Host, o)
	}
	if err := o.SendOn(); err != nil {
		return dead(err)
	}
	if place != exchange.At || s.Answer == nil {
		return nil
	}
	made, err := s.Answer(s.asked(req, o))
	if err != nil {
		return localAnswer(o.Identity(), http.StatusBadRequest, errNotForked, "tapedeck: the answer cannot be given: "+err.Error())
	}
	if s.tape.Reveal != nil {
		for i, chunk := range made.Chunks {
			made.Chunks[i] = s.tape.Reveal(chunk)
		}
	}
	return &answer{status: http.StatusOK, header: made.Header, length: -1, body: &pieces{made.Chunks}}
}

// goesOn is an answer of the tape that may go on past the point.
func (s *forking) goesOn(o *exchange.Open, a *answer) *answer {
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
func (s *forking) asks(ctx context.Context, req *exchange.Request) (*http.Response, error) {
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

// past reports whether what comes now goes to its upstream.
func (f *Fork) past() bool { return f != nil && f.Live && f.At.Past() }
