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

// notOnTape is the error type of a request that the tape does not answer.
const notOnTape = "not_on_tape"

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
	return localAnswer(id, exchange.RefusedStatus, notOnTape, exchange.Refusal(req, why))
}

// recorded is the answer that an exchange of the tape holds. The Book is told of one that is damaged.
func (s *Server) recorded(ctx context.Context, id *exchange.Identity, rec *exchange.Recorded) *answer {
	ex := rec.Exchange
	damage := func(err error) {
		s.log.Error("recorded answer cannot be given", "seq", rec.Seq, "url", ex.URL, "error", err)
		s.cfg.Book.Damage(rec, err)
	}
	if ex.Status < 200 {
		return dead(cutAgain(ctx, ex.Error))
	}
	b, total, err := openAnswer(s.cfg.Blobs, ex)
	if err != nil {
		damage(err)
		message := fmt.Sprintf("tapedeck: the recorded answer of %s %s: %v", ex.Method, ex.URL, err)
		return localAnswer(id, http.StatusBadRequest, "damaged_tape", message)
	}
	b.speed, b.start, b.damage, b.reveal = s.cfg.Speed, time.Now(), damage, s.cfg.Reveal
	a := &answer{status: ex.Status, header: recordedHeader(ex.ResponseHeaders), body: b}
	a.prompt = b.speed <= 0 && len(b.chunks) > 0 && b.chunks[0].Length > 0
	a.length = consistentLength(a.header, ex, total)
	if s.reveals(ex) {
		a.header.Del("Content-Length") // a value is rarely as long as its placeholder
		a.length = -1
		return a
	}
	a.recorded, a.blobs = rec, s.cfg.Blobs
	return a
}

// reveals reports whether Reveal may change the body of ex: what is too long to look through may.
func (s *Server) reveals(ex *tape.Exchange) bool {
	if s.cfg.Reveal == nil || ex.Response == nil || !hasBody(ex.Method, ex.Status) {
		return false
	}
	if ex.Response.Len > maxPiece {
		return true
	}
	b, err := ex.Response.Bytes(s.cfg.Blobs)
	return err == nil && !bytes.Equal(s.cfg.Reveal(b), b)
}

// consistentLength keeps the recorded Content-Length where it fits the bytes: it is theirs, or beyond them in an answer
// that was cut. Scrubbing may have changed a body's length; then the field goes.
func consistentLength(h http.Header, ex *tape.Exchange, total int64) int64 {
	n := contentLength(h)
	if !hasBody(ex.Method, ex.Status) || n == total || n > total && ex.Error != "" {
		return n
	}
	h.Del("Content-Length")
	return -1
}

func recordedHeader(fields []tape.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}
