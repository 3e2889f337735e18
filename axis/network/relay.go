package network

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A relay passes one answer on to the program and records it on the way: what the program got is what the tape holds.
type relay struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	r    *http.Request
	o    *exchange.Open
	a    *answer
	log  *slog.Logger
	sent int64 // bytes of the body
}

// relayAnswer passes a to the program. Each chunk is recorded, then written and flushed; the end of the answer reaches the
// program after it has been recorded. The error, if any, has been recorded; the caller cuts the program's connection.
//
// An answer that cannot be written does not come to its end for the program: what the tape does not hold it does not get.
func relayAnswer(w http.ResponseWriter, r *http.Request, o *exchange.Open, a *answer, log *slog.Logger) error {
	x := &relay{w: w, rc: http.NewResponseController(w), r: r, o: o, a: a, log: log}
	if a.status == 0 {
		return x.cut(a.err)
	}
	x.head()
	exchange.SetHeader(w.Header(), a.header)
	x.chunked()
	if a.length == 0 || a.body == nil || !exchange.HasBody(r.Method, a.status) {
		if err := o.End(""); err != nil {
			return err
		}
		w.WriteHeader(a.status)
		return nil
	}
	w.WriteHeader(a.status)
	if !a.prompt {
		if err := x.rc.Flush(); err != nil {
			return x.cut(errCancelled)
		}
	}
	return x.chunks()
}

// chunked keeps net/http from telling the length of a short answer that had none: it would where header and body leave at once.
// net/http writes the field itself, once, and leaves it out for HTTP/1.0. HTTP/2 has no such field: see last.
func (x *relay) chunked() {
	if x.a.length < 0 && x.a.body != nil && x.r.ProtoMajor == 1 && exchange.HasBody(x.r.Method, x.a.status) {
		x.w.Header().Set("Transfer-Encoding", "chunked")
	}
}

// head records the head of the answer.
func (x *relay) head() {
	if x.a.passes {
		x.o.Replay(x.a.status, x.a.header)
		return
	}
	x.o.Response(x.a.status, x.a.header)
}

// chunks passes the body on.
func (x *relay) chunks() error {
	for {
		chunk, err := x.a.body.Next(x.r.Context())
		done, werr := x.chunk(chunk, errors.Is(err, io.EOF))
		switch {
		case done || werr != nil:
			return werr
		case err == nil:
		case errors.Is(err, io.EOF) && x.a.length > x.sent:
			return x.cut(io.ErrUnexpectedEOF)
		case errors.Is(err, io.EOF):
			return x.o.End("")
		default:
			return x.cut(err)
		}
	}
}

// chunk passes one chunk on; ended says that the body gave its end with it. done says that it was the last one of a whole
// answer, which was held until the exchange had been recorded.
func (x *relay) chunk(b []byte, ended bool) (done bool, err error) {
	if len(b) == 0 {
		return false, nil
	}
	if err := x.o.Chunk(b); err != nil {
		x.log.Debug("answer is not kept", "url", x.r.URL.String(), "error", err)
		return false, x.cut(err)
	}
	x.sent += int64(len(b))
	if whole := x.sent >= x.a.length; whole && (ended || x.a.length >= 0) {
		return true, x.last(b)
	}
	if _, err := x.w.Write(b); err != nil {
		return false, x.cut(errCancelled)
	}
	if err := x.rc.Flush(); err != nil {
		return false, x.cut(errCancelled)
	}
	return false, nil
}

// last records the exchange and passes its last chunk on, which leaves together with the end of the answer.
func (x *relay) last(b []byte) error {
	if err := x.o.End(""); err != nil {
		return err
	}
	_, err := x.w.Write(b)
	if err != nil || x.a.length >= 0 || x.r.ProtoMajor == 1 {
		return err
	}
	return x.rc.Flush() // without it net/http would tell the length of a short answer
}

// cut records why the answer ended early. Whatever the program itself has ended is its doing.
func (x *relay) cut(err error) error {
	if x.a.prompt && x.sent == 0 {
		_ = x.rc.Flush() // the program sees the head before the cut; one that has gone sees neither
	}
	if x.r.Context().Err() != nil {
		err = errCancelled
	}
	return errors.Join(err, x.o.End(errorText(err)))
}

// writeWhole writes an answer of our own that cannot be recorded.
func writeWhole(w http.ResponseWriter, a *answer) error {
	exchange.SetHeader(w.Header(), a.header)
	w.WriteHeader(a.status)
	b, _ := a.body.Next(context.Background())
	_, err := w.Write(b)
	return err
}
