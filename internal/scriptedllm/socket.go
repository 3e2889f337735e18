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

// maxLanes is how many lanes one socket may name (stream_id).
const maxLanes = 32

// opened and passes are what most protocols do: nothing.
func (s *socket) opened()               {}
func (s *socket) passes(string, object) {}

// A talker is what one protocol says over a WebSocket beside its answers.
type talker interface {
	opened() // is called once, before anything is read
	// heard takes one message of the client. It must not wait.
	heard(payload []byte)
	// fails says that a turn of a lane failed; a code of "" is the status's own.
	fails(lane string, status int, code, message string)
	// passes changes an event of an answer before it is sent.
	passes(lane string, event object)
}

// A socket is one WebSocket of a client. What passes on it is followed as a recorder follows it: that folds all that was said so far
// into the request of a turn, which is answered like one by HTTP.
type socket struct {
	e *Endpoint
	r *http.Request // the upgrade

	provider string
	talker   talker
	conn     *websocket.Conn
	ctx      context.Context // of the socket
	opcode   websocket.MessageType

	mu    sync.Mutex // guards what follows, and sending
	turns exchange.Turns
	cut   *cutter // counts what is left to send

	work  sync.WaitGroup           // answers under way
	lanes map[string]chan struct{} // by name: closed once the last turn of it is answered; of the reader alone
}

// talk returns the handler of a protocol over WebSockets. Requests for anything else go to the handler of unknown paths.
func (e *Endpoint) talk(provider string, opcode websocket.MessageType, begin func(*socket) talker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		url := "wss://" + r.Host + r.URL.RequestURI()
		turns := e.classifier.Sockets(&exchange.Request{Method: http.MethodGet, URL: url, Header: r.Header})
		if r.Header.Get("Upgrade") == "" || turns == nil {
			e.unknown(w, r)
			return
		}
		if !e.admits(r) {
			s := newSink(w, r, &e.opts)
			defer s.end()
			e.fail(provider, s, nil, http.StatusUnauthorized, "invalid API key")
			return
		}
		llm.Header(w.Header(), provider, e.ids)
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			InsecureSkipVerify: true, // any page may talk to a script
			Subprotocols:       []string{"realtime"},
			CompressionMode:    websocket.CompressionContextTakeover,
		})
		if err != nil {
			return // which Accept has answered
		}
		conn.SetReadLimit(maxBody)
		ctx, cancel := context.WithCancel(context.Background()) // the request's ends with the upgrade
		defer cancel()
		s := &socket{
			e: e, r: r, provider: provider, conn: conn, ctx: ctx, opcode: opcode, turns: turns, lanes: make(map[string]chan struct{}),
			cut: &cutter{w: io.Discard, left: e.opts.CutAfter, armed: e.opts.CutAfter > 0},
		}
		s.talker = begin(s)
		s.serve(cancel)
	}
}

// serve reads messages until the client is gone, and waits for the answers.
func (s *socket) serve(cancel func()) {
	s.talker.opened()
	for {
		_, payload, err := s.conn.Read(s.ctx)
		if err != nil {
			break
		}
		s.talker.heard(payload)
	}
	cancel()
	s.work.Wait()
	_ = s.conn.CloseNow() // it is closed by now, or nobody listens
}

// errShut ends the answers of a socket that is no longer there.
var errShut = errors.New("the socket is shut")

// send sends one message. A socket whose bytes are used up breaks without a word.
func (s *socket) send(v object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := encode(v)
	s.turns.Server(int(s.opcode), b)
	if _, err := s.cut.Write(b); err != nil {
		_ = s.conn.CloseNow()
		return errShut
	}
	return s.conn.Write(s.ctx, s.opcode, b)
}

// take follows a message of the client's, and answers the turn that it begins in its lane: the lane's turns one after another, and
// lanes side by side. payload is what is logged.
func (s *socket) take(message, payload []byte, lane string) {
	s.mu.Lock()
	turn := s.turns.Client(int(s.opcode), message)
	s.mu.Unlock()
	if turn.Part != exchange.TurnBegins {
		return
	}
	before, known := s.lanes[lane]
	if !known && len(s.lanes) > maxLanes {
		s.talker.fails(lane, http.StatusBadRequest, "websocket_stream_limit_reached", "too many lanes")
		return
	}
	done := make(chan struct{})
	s.lanes[lane] = done
	s.work.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		s.answer(turn.Request, payload, lane)
	})
}

// answer sends the script's answer to a turn.
func (s *socket) answer(asked *exchange.Request, payload []byte, lane string) {
	e := s.e
	fails := func(status int, code, message string) {
		e.log(e.request(s.r, payload, s.provider, status))
		s.talker.fails(lane, status, code, message)
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
		s.talker.passes(lane, event)
		if out.pause(); out.err == nil {
			out.err = s.send(event)
		}
	})
}
