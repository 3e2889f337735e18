package scriptedllm

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// errCut is what a write reports once the answer has been cut on purpose.
var errCut = errors.New("answer cut")

// A sink carries one answer to the client. After the first failed write it drops everything: the client is gone, or
// the answer was cut.
type sink struct {
	r     *http.Request
	w     http.ResponseWriter
	rc    *http.ResponseController
	gz    *gzip.Writer // nil: not compressed
	out   io.Writer    // gz, or body
	body  *cutter
	delay time.Duration
	sent  int // events
	err   error
}

func newSink(w http.ResponseWriter, r *http.Request, opts *Options) *sink {
	s := &sink{r: r, w: w, rc: http.NewResponseController(w), delay: opts.Delay}
	s.body = &cutter{w: w, left: opts.CutAfter, armed: opts.CutAfter > 0}
	s.out = s.body
	if opts.Gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		s.gz = gzip.NewWriter(s.body)
		s.out = s.gz
	}
	return s
}

// json sends one object as the whole answer.
func (s *sink) json(status int, body []byte) {
	s.w.Header().Set("Content-Type", "application/json")
	s.w.WriteHeader(status)
	s.write(append(body, '\n'))
}

// begin starts a stream.
func (s *sink) begin(contentType string) {
	s.w.Header().Set("Content-Type", contentType)
	s.w.WriteHeader(http.StatusOK)
}

// send writes one piece of a stream, after the delay, and flushes it.
func (s *sink) send(piece []byte) {
	s.pause()
	s.write(piece)
	if s.err == nil && s.gz != nil {
		s.err = s.gz.Flush()
	}
	if s.err == nil {
		s.err = s.rc.Flush()
	}
}

// pause waits before every event but the first.
func (s *sink) pause() {
	if s.sent > 0 {
		s.wait(s.delay)
	}
	s.sent++
}

// wait waits, for as long as the client is there.
func (s *sink) wait(d time.Duration) {
	if d <= 0 || s.err != nil {
		return
	}
	select {
	case <-time.After(d):
	case <-s.r.Context().Done():
		s.err = s.r.Context().Err()
	}
}

func (s *sink) write(p []byte) {
	if s.err == nil {
		_, s.err = s.out.Write(p)
	}
}

// end finishes the answer. Where it was cut, it breaks the connection: http.ErrAbortHandler is the way that net/http
// offers, for HTTP/1.1 and HTTP/2 alike, and the server recovers it.
func (s *sink) end() {
	if s.err == nil && s.gz != nil {
		s.err = s.gz.Close()
	}
	if errors.Is(s.err, errCut) {
		_ = s.rc.Flush() // what was written before the cut must arrive; a client that is gone needs nothing
		panic(http.ErrAbortHandler)
	}
}

// A cutter passes writes on until its bytes are used up; an unarmed one passes everything.
type cutter struct {
	w     io.Writer
	left  int
	armed bool
}

func (c *cutter) Write(p []byte) (int, error) {
	if !c.armed || len(p) < c.left {
		c.left -= len(p)
		return c.w.Write(p)
	}
	n, err := c.w.Write(p[:c.left])
	c.left = 0
	if err != nil {
		return n, err
	}
	return n, errCut
}

// encode is JSON as the providers send it: without HTML escapes. The values are our own, they always encode.
func encode(v any) []byte {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

// object is a JSON object of an answer.
type object = map[string]any
