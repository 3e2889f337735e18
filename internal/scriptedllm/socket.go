package scriptedllm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// maxLanes is how many lanes one socket may name (stream_id).
const maxLanes = 32

// A talker is one protocol over one WebSocket.
type talker interface {
	// opened is called once, before anything is read.
	opened()
	// heard takes one message of the client. It must not wait.
	heard(payload []byte)
}

// A socket is one WebSocket of a client.
type socket struct {
	e      *Endpoint
	r      *http.Request // the upgrade
	conn   *websocket.Conn
	ctx    context.Context // of the socket
	opcode websocket.MessageType
	cut    *cutter // counts what is left to send

	mu   sync.Mutex     // guards sending
	work sync.WaitGroup // answers under way
}

// talk returns the handler of a protocol over WebSockets. Requests for anything else go to the handler of unknown paths.
func (e *Endpoint) talk(d wire, opcode websocket.MessageType, begin func(*socket) talker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			e.unknown(w, r)
			return
		}
		if !e.admits(d.key(r)) {
			s := newSink(w, r, &e.opts)
			defer s.end()
			e.fail(d, s, r, nil, http.StatusUnauthorized, "invalid API key")
			return
		}
		d.header(w.Header(), e.ids)
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
			e: e, r: r, conn: conn, ctx: ctx, opcode: opcode,
			cut: &cutter{w: discard{}, left: e.opts.CutAfter, armed: e.opts.CutAfter > 0},
		}
		s.serve(begin(s), cancel)
	}
}

// serve reads messages until the client is gone, and waits for the answers.
func (s *socket) serve(t talker, cancel func()) {
	t.opened()
	for {
		_, payload, err := s.conn.Read(s.ctx)
		if err != nil {
			break
		}
		t.heard(payload)
	}
	cancel()
	s.work.Wait()
	_ = s.conn.CloseNow() // it is closed by now, or nobody listens
}

// discard is a writer that only a cutter counts for.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// errShut ends the answers of a socket that is no longer there.
var errShut = errors.New("the socket is shut")

// send sends one message. A socket whose bytes are used up breaks without a word.
func (s *socket) send(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := encode(v)
	if _, err := s.cut.Write(b); err != nil {
		_ = s.conn.CloseNow()
		return errShut
	}
	return s.conn.Write(s.ctx, s.opcode, b)
}

// sink returns a sink whose events are messages. Each is changed by mark before it is sent; nil changes nothing.
func (s *socket) sink(mark func(object)) *sink {
	return &sink{r: s.r.WithContext(s.ctx), delay: s.e.opts.Delay, message: func(v any) error {
		if o, ok := v.(object); ok && mark != nil {
			mark(o)
		}
		return s.send(v)
	}}
}

// lanes run what is asked for in one lane one after another, and lanes side by side.
type lanes struct {
	work *sync.WaitGroup
	last map[string]chan struct{} // by name: closed once the last of it is done
}

// do does it once the lane has done all before; false where there are too many lanes.
func (l *lanes) do(name string, do func()) bool {
	if l.last == nil {
		l.last = make(map[string]chan struct{})
	}
	before, known := l.last[name]
	if !known && len(l.last) > maxLanes {
		return false
	}
	done := make(chan struct{})
	l.last[name] = done
	l.work.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		do()
	})
	return true
}

// answer logs a turn and sends the script's answer to it with tell, after what came before it.
func (s *socket) answer(payload []byte, provider string, t *turn, body []byte, tell func(re *reply, s *sink)) {
	e := s.e
	re := &reply{turn: t, answer: e.plan(t), ids: e.ids, chunk: e.opts.Chunk, inTokens: tokens(body)}
	q := e.request(s.r, payload, provider, http.StatusOK)
	q.Stream = true
	if len(re.answer.calls) > 0 {
		q.Tool = re.answer.calls[0].name
	}
	e.log(q)
	out := s.sink(nil)
	if e.opts.Before != nil {
		out.wait(e.opts.Before(len(t.tools) > 0))
	}
	tell(re, out)
}

// silence is how few bytes of base64 are taken for silence: a server that listens then takes the user to have ended.
const silence = 64

// bodyOf is a request's body with one member in the place of another.
func bodyOf(message []byte, key string, value any) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(message, &members); err != nil {
		return nil, err
	}
	if members == nil {
		members = make(map[string]json.RawMessage)
	}
	members[key] = encode(value)
	return encode(members), nil
}
