package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// cancelPatience is how long at least the replay of an answer that the program had cancelled waits for it to do so again
// (Recorded.Patience).
const cancelPatience = time.Minute

// replayed decides what a request gets from the tape. It never resolves and never dials.
func (s *Server) replayed(ctx context.Context, req *exchange.Request, host string, o *exchange.Open) *answer {
	id := o.Identity()
	if rec, ok := o.Take(s.cfg.Book); ok {
		return s.recorded(ctx, id, rec)
	}
	if s.cfg.Book.DeadHost(host) {
		return dead(errors.New("no upstream answered for this host while recording"))
	}
	_, why := s.cfg.Book.Nearest(id, o.Request())
	o.Refuse(why)
	return localAnswer(id, exchange.RefusedStatus, exchange.NotOnTape, exchange.Refusal(req, why))
}

// recorded is the answer that an exchange of the tape holds. The Book is told of one that is damaged.
func (s *Server) recorded(ctx context.Context, id *exchange.Identity, rec *exchange.Recorded) *answer {
	ex := rec.Exchange
	damage := func(err error) {
		s.log.Error("recorded answer cannot be given", "seq", rec.Seq, "url", ex.URL, "error", err)
		s.cfg.Book.Damage(rec, err)
	}
	o := exchange.AnswerOptions{Speed: s.cfg.Speed, Patience: rec.Patience(cancelPatience), Reveal: s.cfg.Reveal}
	o.Damage = func(err error) error {
		damage(err)
		return fmt.Errorf("recorded answer is damaged: %w", err)
	}
	if ex.Status < 200 {
		return dead(exchange.CutAgain(ctx, ex.Error, &o))
	}
	b, err := exchange.OpenAnswer(s.cfg.Blobs, ex, &o)
	if err != nil {
		damage(err)
		message := fmt.Sprintf("tapedeck: the recorded answer of %s %s: %v", ex.Method, ex.URL, err)
		return localAnswer(id, http.StatusBadRequest, "damaged_tape", message)
	}
	a := &answer{status: ex.Status, header: exchange.HeaderOf(ex.ResponseHeaders), body: b, prompt: b.Prompt()}
	sameHeader := s.revealHeader(a.header)
	size, same := s.given(ex, b.Size())
	if size < 0 {
		a.header.Del("Content-Length")
		a.length = -1
		return a
	}
	if rec.Length >= 0 && rec.Length == size {
		a.header.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	a.length, a.passes = exchange.FittingLength(a.header, ex, size), same && sameHeader
	return a
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

// given returns the length in bytes of what the program gets of the body of ex, which is stored with size bytes, and whether
// that is what is stored. The length is -1 where the body is too long to be looked through.
func (s *Server) given(ex *tape.Exchange, size int64) (n int64, same bool) {
	if s.cfg.Reveal == nil || ex.Response == nil || !exchange.HasBody(ex.Method, ex.Status) {
		return size, true
	}
	if ex.Response.Len > maxRevealed {
		return -1, false
	}
	b, err := ex.Response.Bytes(s.cfg.Blobs)
	if err != nil {
		return size, true
	}
	if out := s.cfg.Reveal(b); !bytes.Equal(out, b) {
		return int64(len(out)), false
	}
	return size, true
}
