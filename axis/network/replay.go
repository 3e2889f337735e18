package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
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
	a.length = exchange.FittingLength(a.header, ex, b.Size())
	if s.reveals(ex) {
		a.header.Del("Content-Length") // a value is rarely as long as its placeholder
		a.length = -1
		return a
	}
	a.passes = true
	return a
}

// maxRevealed bounds, in bytes, the answer that is looked through before it is given.
const maxRevealed = 1 << 20

// reveals reports whether Reveal may change the body of ex: what is too long to look through may.
func (s *Server) reveals(ex *tape.Exchange) bool {
	if s.cfg.Reveal == nil || ex.Response == nil || !exchange.HasBody(ex.Method, ex.Status) {
		return false
	}
	if ex.Response.Len > maxRevealed {
		return true
	}
	b, err := ex.Response.Bytes(s.cfg.Blobs)
	return err == nil && !bytes.Equal(s.cfg.Reveal(b), b)
}
