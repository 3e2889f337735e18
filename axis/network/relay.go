package network

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A relay passes one answer on to the program and records it on the way: what the program got is what the tape holds.
type relay struct {
	turn    *turn // nil where the program's connection is none of ours
	w       http.ResponseWriter
	rc      *http.ResponseController
	r       *http.Request
	o       *exchange.Open
	a       *answer
	log     *slog.Logger
	sent    int64 // bytes of the body
	order   order
	passage exchange.Passage // nil where the answer carries no conversation

	writing sync.Mutex // held by who uses w once the head has passed: a conversation may say something of its own in between

	after []int // of a gRPC call: how far its request had come at each step of the answer
}

// relayAnswer passes a to the program. Each chunk is recorded, then written and flushed; the end of the answer reaches the program after it has
// been recorded. The error, if any, has been recorded; the caller cuts the program's connection.
//
// An answer that cannot be written does not come to its end for the program: what the tape does not hold it does not get.
func relayAnswer(log *slog.Logger, w http.ResponseWriter, r *http.Request, o *exchange.Open, a *answer) (err error) {
	if a.body != nil {
		defer a.body.Close()
	}
	x := &relay{turn: connOf(r.Context()).turnOf(r.ProtoMajor, w), w: w, rc: http.NewResponseController(w), r: r, o: o, a: a, log: log, passage: o.Passage()}
	defer func() {
		if err != nil {
			x.turn.cut()
			log.Debug("exchange was cut", "url", o.Request().URL, "error", err)
		}
	}()
	if x.passage != nil {
		defer x.passage.Close()
	}
	x.step()
	if a.status == 0 {
		return x.cut(a.err)
	}
	if err := x.head(); err != nil {
		return x.cut(err)
	}
	exchange.SetHeader(w.Header(), a.header)
	x.framing()
	if a.length == 0 || a.body == nil || !exchange.HasBody(r.Method, a.status) {
		x.take()
		if err := x.over(""); err != nil {
			return err
		}
		x.turn.writes(0, true)
		w.WriteHeader(a.status)
		return nil
	}
	w.WriteHeader(a.status)
	if !a.prompt { // the header goes before anything else comes
		x.turn.inOrder(x.order != orderNone, x.order == orderEnds)
		if err := x.put(nil); err != nil {
			return x.cut(err)
		}
	}
	if x.passage != nil {
		x.passage.Between(x.put)
	}
	return x.chunks()
}

// framing keeps net/http from telling the length of a short answer that had none: it would where header and body leave at once.
// net/http writes the field of HTTP/1.1 itself, once, and leaves it out for HTTP/1.0. HTTP/2 has no such field: see last. A program of
// HTTP/1.1 is told the names of the trailers, as the upstream did; in HTTP/2 they need no announcing, and gRPC does without.
func (x *relay) framing() {
	h, http1 := x.w.Header(), x.r.ProtoMajor == 1
	if http1 && x.a.length < 0 && x.a.body != nil && exchange.HasBody(x.r.Method, x.a.status) {
		h.Set("Transfer-Encoding", "chunked")
	}
	if http1 && x.a.trailer != nil && len(*x.a.trailer) > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(*x.a.trailer)), ", ")}
	}
	if _, told := x.a.header["Content-Length"]; x.a.trails && !told && x.r.ProtoMajor == 2 {
		h["Content-Length"] = nil // an answer that is nothing but its head says no length, and ends with it
	}
}

// head records the head of the answer. The conversation that it carries may change what the program gets.
func (x *relay) head() error {
	if x.a.passes {
		x.o.Replay(x.a.status, x.a.header)
	} else {
		x.o.Response(x.a.status, x.a.header)
	}
	x.order = orderOf(x.o.Key().Kind, x.a.header.Get("Content-Type"))
	x.turn.inOrder(x.order != orderNone, false)
	x.turn.begins(x.o.Begins)
	if x.passage == nil {
		return nil
	}
	_, told := x.a.header["Content-Length"]
	err := x.passage.Head(x.a.status, x.a.header)
	if _, tells := x.a.header["Content-Length"]; told && !tells {
		x.a.length = -1
	}
	return err
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
			if err := x.rest(); err != nil {
				return x.cut(err)
			}
			x.trail()
			x.turn.inOrder(x.order != orderNone, false)
			x.take()
			if err := x.over(""); err != nil {
				return err
			}
			x.turn.writes(0, true)
			return nil
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
	x.step()
	sent := x.sent + int64(len(b))
	last := sent >= x.a.length && (ended || x.a.length >= 0 && !x.a.trails)
	x.turn.inOrder(x.order == orderAll || x.order == orderEnds && (last || x.sent == 0), false)
	x.take()
	if err := x.o.Chunk(b); err != nil {
		x.log.Debug("answer is not kept", "url", x.r.URL.String(), "error", err)
		return false, x.cut(err)
	}
	x.sent = sent
	if x.passage != nil {
		if b, err = x.said(b, last); err != nil {
			return false, x.cut(err)
		}
	}
	if last {
		return true, x.last(b)
	}
	if err := x.write(b); err != nil {
		return false, x.cut(err)
	}
	return false, nil
}

// An order says which pieces of an answer reach the program one after another with those of others (Config.Giving).
type order uint8

const (
	orderNone order = iota // none: an archive, a picture, whose pieces come as fast as they can
	orderEnds              // its head and its end: a program makes nothing of half a document, and messages of a gRPC call have an order in that alone
	orderAll               // all: a stream of which it takes up each event
)

// orderOf is that of an answer of this media type.
func orderOf(kind exchange.Kind, contentType string) order {
	media, _, _ := mime.ParseMediaType(contentType)
	group, _, _ := strings.Cut(media, "/")
	switch {
	case kind == exchange.LLM, media == "text/event-stream",
		slices.ContainsFunc([]string{"ndjson", "jsonl", "json-seq", "stream+json", "eventstream"}, func(end string) bool { return strings.HasSuffix(media, end) }):
		return orderAll
	case slices.Contains([]string{"image", "audio", "video", "font"}, group),
		slices.ContainsFunc([]string{"octet-stream", "zip", "tar", "pdf", "zstd", "wasm", "xz", "bzip2"}, func(end string) bool { return strings.HasSuffix(media, end) }):
		return orderNone
	}
	return orderEnds
}

// take has what is recorded next be what the program gets next. What a conversation makes of it may wait for others.
func (x *relay) take() {
	if x.passage == nil {
		x.turn.take()
	}
}

// write passes bytes on at once.
func (x *relay) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := x.put(b); err != nil {
		return err
	}
	if x.passage != nil {
		x.passage.Passed()
	}
	return nil
}

// put writes bytes out.
func (x *relay) put(b []byte) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	left := x.turn.writes(len(b), false)
	if _, err := x.w.Write(b); err != nil {
		return errCancelled
	}
	if err := x.rc.Flush(); err != nil {
		return errCancelled
	}
	left()
	return nil
}

// said gives a chunk to the conversation that it carries. Of what the program gets instead, all but the last piece is passed on.
func (x *relay) said(b []byte, ended bool) (last []byte, err error) {
	pieces, err := x.passage.Chunk(x.r.Context(), b, ended)
	if err != nil || len(pieces) == 0 {
		return nil, err
	}
	for _, piece := range pieces[:len(pieces)-1] {
		if err := x.write(piece); err != nil {
			return nil, err
		}
	}
	return pieces[len(pieces)-1], nil
}

// rest passes on what the conversation held of an answer that ended.
func (x *relay) rest() error {
	if x.passage == nil {
		return nil
	}
	b, err := x.said(nil, true)
	if err != nil {
		return err
	}
	return x.write(b)
}

// step notes how far the request of a gRPC call has come, before what of the answer comes now.
func (x *relay) step() {
	if x.a.asked != nil {
		x.after = append(x.after, x.a.asked.steps())
	}
}

// over ends the exchange. Of a gRPC call it is now known what was asked.
func (x *relay) over(errText string) error {
	if x.a.asked != nil {
		body, steps := x.a.asked.sofar()
		x.after = append(x.after, steps)
		if x.a.ends != nil && errText == "" {
			body = x.a.ends.recorded(body)
		}
		if x.a.asked.cameBefore(x.after[0]) {
			x.after = nil
		}
		x.o.Whole(body, x.after)
	}
	return x.o.End(errText)
}

// trail records the trailers and gives them to the program: they leave with the end.
func (x *relay) trail() {
	if x.a.trailer == nil {
		return
	}
	x.o.Trailers(*x.a.trailer)
	for name, values := range *x.a.trailer {
		if len(values) > 0 {
			x.w.Header()[http.TrailerPrefix+name] = values
		}
	}
}

// last records the exchange and passes its last chunk on, which leaves together with the end of the answer.
func (x *relay) last(b []byte) error {
	x.trail()
	if err := x.over(""); err != nil {
		return err
	}
	if x.r.Close || x.w.Header().Get("Connection") == "close" {
		x.turn.end()
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.turn.writes(len(b), true)
	_, err := x.w.Write(b)
	if err != nil || x.a.length >= 0 || x.r.ProtoMajor == 1 {
		return err
	}
	return x.rc.Flush() // without it net/http would tell the length of a short answer
}

// cut records why the answer ended early. Whatever the program itself has ended is its doing.
func (x *relay) cut(err error) error {
	var recorded *exchange.CutError
	if errors.As(err, &recorded) {
		_ = x.rest() // it is cut whether that is possible or not
	}
	if x.a.prompt && x.sent == 0 {
		x.writing.Lock()
		_ = x.rc.Flush() // the program sees the head before the cut; one that has gone sees neither
		x.writing.Unlock()
	}
	if x.r.Context().Err() != nil {
		err = errCancelled
	}
	return errors.Join(err, x.over(errorText(err)))
}
