package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// cancelPatience is how long at least the replay of an answer that the program had cancelled waits for it to do so again
// (Recorded.Patience).
const cancelPatience = 10 * time.Second

// replayed decides what a request gets from the tape. It never resolves and never dials. Of what denied says, only that an
// upgrade is refused holds here too: a client that is told anything else about it may not go on without.
func (s *Server) replayed(ctx context.Context, req *exchange.Request, host string, o *exchange.Open, denied *denial) *answer {
	id := o.Identity()
	if denied != nil && denied.kind == upgradeRequired {
		if !o.Upgrade(s.cfg.Book) {
			s.unmatched(o)
		}
		return localAnswer(id, denied.status, denied.kind, denied.message)
	}
	if rec, ok := o.Take(s.cfg.Book); ok {
		return s.recorded(ctx, id, rec)
	}
	if s.cfg.Book.DeadHost(host) {
		return dead(errors.New("no upstream answered for this host while recording"))
	}
	return localAnswer(id, exchange.RefusedStatus, exchange.NotOnTape, exchange.Refusal(req, s.unmatched(o)))
}

// unmatched says on the tape that nothing recorded answers a request, and returns why.
func (s *Server) unmatched(o *exchange.Open) (why string) {
	_, why = s.cfg.Book.Nearest(o.Identity(), o.Request())
	o.Refuse(why)
	return why
}

// recorded is the answer that an exchange of the tape holds. The Book is told of one that is damaged.
func (s *Server) recorded(ctx context.Context, id *exchange.Identity, rec *exchange.Recorded) *answer {
	ex := rec.Exchange
	damage := func(err error) {
		s.log.Error("recorded answer cannot be given", "seq", rec.Seq, "url", ex.URL, "error", err)
		s.cfg.Book.Damage(rec, err)
	}
	o := exchange.AnswerOptions{Speed: s.cfg.Speed, Patience: rec.Patience(cancelPatience), Of: rec, Reveal: s.cfg.Reveal}
	o.Damage = func(err error) error {
		damage(err)
		return fmt.Errorf("recorded answer is damaged: %w", err)
	}
	if ex.Status < 200 {
		return dead(exchange.CutAgain(ctx, ex.Error, &o))
	}
	size, same := s.look(ex, &o)
	b, err := exchange.OpenAnswer(s.cfg.Blobs, ex, &o)
	if err != nil {
		damage(err)
		message := fmt.Sprintf("tapedeck: the recorded answer of %s %s: %v", ex.Method, ex.URL, err)
		return localAnswer(id, http.StatusBadRequest, "damaged_tape", message)
	}
	if !b.Prompt() { // else the head waits with the first chunk
		if err := b.Begin(ctx); err != nil {
			return dead(errors.Join(err, b.Close()))
		}
	}
	a := &answer{status: ex.Status, header: exchange.HeaderOf(ex.ResponseHeaders), body: playedBody{b}, prompt: b.Prompt()}
	a.passes = s.revealHeader(a.header) && same
	if same {
		size = b.Size()
	}
	a.length = lengthOf(a.header, rec, size)
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
func (s *Server) revealHeader(h http.Header) (same bool) {
	same = true
	if s.cfg.Reveal == nil {
		return same
	}
	for _, values := range h {
		for i, v := range values {
			if out := string(s.cfg.Reveal([]byte(v))); out != v {
				values[i], same = out, false
			}
		}
	}
	return same
}

// look looks through the body of ex for what has to be revealed. Where there is nothing, the program gets what is stored: o
// then holds the bytes, which need not be read and looked through again, and same is true. Else size is the length in bytes
// of what the program gets, -1 where the body is too long to be looked through.
func (s *Server) look(ex *tape.Exchange, o *exchange.AnswerOptions) (size int64, same bool) {
	if s.cfg.Reveal == nil || ex.Response == nil || !exchange.HasBody(ex.Method, ex.Status) {
		return 0, true
	}
	if ex.Response.Len > maxRevealed {
		return -1, false
	}
	b, err := ex.Response.Bytes(s.cfg.Blobs)
	if err != nil {
		return 0, true // whoever opens the body finds the same
	}
	if out := s.cfg.Reveal(b); !bytes.Equal(out, b) {
		return int64(len(out)), false
	}
	o.Reveal, o.Stored = nil, b
	return 0, true
}
