package scriptedllm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

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
