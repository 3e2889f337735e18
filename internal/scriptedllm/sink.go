package scriptedllm

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
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

// A socket is one WebSocket of a client of the responses API: https://developers.openai.com/api/docs/guides/websocket-mode. What passes on
// it is followed as a recorder follows it: that folds all that was said so far into the request of a turn, which is answered like one by HTTP.
type socket struct {
	e    *Endpoint
	r    *http.Request // the upgrade
	conn *websocket.Conn
	ctx  context.Context // of the socket

	mu    sync.Mutex // guards what follows, and sending
	turns exchange.Turns
	cut   *cutter // counts what is left to send

	work  sync.WaitGroup           // answers under way
	lanes map[string]chan struct{} // by name: closed once the last turn of it is answered; of the reader alone
}

// talk answers over a WebSocket. A request for anything else has no known path.
func (e *Endpoint) talk(w http.ResponseWriter, r *http.Request) {
	url := "wss://" + r.Host + r.URL.RequestURI()
	turns := e.classifier.Sockets(&exchange.Request{Method: http.MethodGet, URL: url, Header: r.Header})
	if r.Header.Get("Upgrade") == "" || turns == nil {
		e.unknown(w, r)
		return
	}
	if !e.admits(r) {
		s := newSink(w, r, &e.opts)
		defer s.end()
		e.fail("openai", s, nil, http.StatusUnauthorized, "invalid API key")
		return
	}
	llm.Header(w.Header(), "openai", e.ids)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // any page may talk to a script
		CompressionMode:    websocket.CompressionContextTakeover,
	})
	if err != nil {
		return // which Accept has answered
	}
	conn.SetReadLimit(maxBody)
	ctx, cancel := context.WithCancel(context.Background()) // the request's ends with the upgrade
	defer cancel()
	s := &socket{
		e: e, r: r, conn: conn, ctx: ctx, turns: turns, lanes: make(map[string]chan struct{}),
		cut: &cutter{w: io.Discard, left: e.opts.CutAfter, armed: e.opts.CutAfter > 0},
	}
	s.serve(cancel)
}

// serve reads messages until the client is gone, and waits for the answers.
func (s *socket) serve(cancel func()) {
	for {
		_, payload, err := s.conn.Read(s.ctx)
		if err != nil {
			break
		}
		s.hear(payload)
	}
	cancel()
	s.work.Wait()
	_ = s.conn.CloseNow() // it is closed by now, or nobody listens
}

// hear takes one message of the client, and answers the turn that it begins in its lane: the lane's turns one after another, and lanes
// side by side.
func (s *socket) hear(payload []byte) {
	var m struct {
		Type string `json:"type"`
		Lane string `json:"stream_id"`
	}
	switch err := json.Unmarshal(payload, &m); {
	case err != nil:
		s.fails("", http.StatusBadRequest, "", "message: "+err.Error())
		return
	case m.Type != "response.create":
		s.fails(m.Lane, http.StatusBadRequest, "", "the script has no "+m.Type)
		return
	}
	s.mu.Lock()
	turn := s.turns.Client(int(websocket.MessageText), payload)
	s.mu.Unlock()
	if turn.Part != exchange.TurnBegins {
		return
	}
	before, done := s.lanes[m.Lane], make(chan struct{})
	s.lanes[m.Lane] = done
	s.work.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		s.answer(turn.Request, payload, m.Lane)
	})
}

// answer sends the script's answer to a turn. payload is what is logged.
func (s *socket) answer(asked *exchange.Request, payload []byte, lane string) {
	e := s.e
	fails := func(status int, code, message string) {
		e.log(e.request(s.r, payload, "openai", status))
		s.fails(lane, status, code, message)
	}
	var goesOn struct {
		From string `json:"previous_response_id"` // an answer that is none of this socket's, or it would have been folded
	}
	if err := json.Unmarshal(asked.Body, &goesOn); err == nil && goesOn.From != "" {
		fails(http.StatusBadRequest, "previous_response_not_found", "Previous response with id '"+goesOn.From+"' not found.")
		return
	}
	q, id, err := e.question(asked)
	if err != nil {
		fails(http.StatusBadRequest, "", err.Error())
		return
	}
	if status := e.fault(id.Surface); status != 0 {
		fails(status, "", "the script wants this to fail once")
		return
	}
	q.Stream = true
	out := &sink{r: s.r.WithContext(s.ctx), delay: e.opts.Delay}
	e.reply(out, payload, q).Events(func(_ string, event object) {
		if out.pause(); out.err == nil {
			out.err = s.send(lane, event)
		}
	})
}

// fails says that a turn failed; a code of "" is the status's own. In a WebSocket the error is an object of its own.
func (s *socket) fails(lane string, status int, code, message string) {
	var event object
	_ = json.Unmarshal(llm.Failure("openai", status, message), &event) // which is an object
	if code != "" {
		event["error"].(object)["code"] = code
	}
	event["type"], event["status"] = "error", status
	_ = s.send(lane, event) // a client that is gone needs none
}

// errShut ends the answers of a socket that is no longer there.
var errShut = errors.New("the socket is shut")

// send sends one event of a lane. A socket whose bytes are used up breaks without a word.
func (s *socket) send(lane string, event object) error {
	if lane != "" {
		event["stream_id"] = lane
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := encode(event)
	s.turns.Server(int(websocket.MessageText), b)
	if _, err := s.cut.Write(b); err != nil {
		_ = s.conn.CloseNow()
		return errShut
	}
	return s.conn.Write(s.ctx, websocket.MessageText, b)
}
