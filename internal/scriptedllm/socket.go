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

// responsesSocket is the responses API over a WebSocket: https://developers.openai.com/api/docs/guides/websocket-mode.
type responsesSocket struct{ *socket }

func newResponsesSocket(s *socket) talker { return responsesSocket{s} }

func (t responsesSocket) heard(payload []byte) {
	var m struct {
		Type   string `json:"type"`
		Stream string `json:"stream_id"`
	}
	switch err := json.Unmarshal(payload, &m); {
	case err != nil:
		t.fails("", http.StatusBadRequest, "", "message: "+err.Error())
	case m.Type != "response.create":
		t.fails(m.Stream, http.StatusBadRequest, "", "the script has no "+m.Type)
	default:
		t.take(payload, payload, m.Stream)
	}
}

// passes names the lane in an event.
func (t responsesSocket) passes(lane string, event object) {
	if lane != "" {
		event["stream_id"] = lane
	}
}

// fails sends the error event. In a WebSocket its error is an object of its own.
func (t responsesSocket) fails(lane string, status int, code, message string) {
	event := failure("openai", status, code, message)
	event["type"], event["status"] = "error", status
	t.passes(lane, event)
	_ = t.send(event) // a client that is gone needs none
}

// failure is a provider's error, with a code of its own where there is one.
func failure(provider string, status int, code, message string) (event object) {
	_ = json.Unmarshal(llm.Failure(provider, status, message), &event) // which is an object
	if code != "" {
		event["error"].(object)["code"] = code
	}
	return event
}

// silence is how few bytes of base64 are taken for silence: a server that listens then takes the user to have ended.
const silence = 64

// realtimeSocket is the Realtime API: https://platform.openai.com/docs/api-reference/realtime. It keeps the session that it tells of.
// Where turn_detection is on, a very short piece of sound is silence, after which it answers by itself.
type realtimeSocket struct {
	*socket
	session object
	heardIt bool // sound came that was not committed
}

func newRealtimeSocket(s *socket) talker {
	return &realtimeSocket{socket: s, session: object{
		"id": s.e.ids.Fresh("sess_", llm.Hexits, 24), "object": "realtime.session", "type": "realtime",
		"model": s.r.URL.Query().Get("model"), "output_modalities": []any{"audio"},
	}}
}

// event sends one event.
func (t *realtimeSocket) event(kind string, o object) {
	o["type"], o["event_id"] = kind, t.e.ids.Fresh("event_", llm.Hexits, 24)
	_ = t.send(o) // a client that is gone needs none
}

func (t *realtimeSocket) opened() { t.event("session.created", object{"session": t.session}) }

func (t *realtimeSocket) fails(_ string, status int, code, message string) {
	t.event("error", failure("openai", status, code, message))
}

func (t *realtimeSocket) heard(payload []byte) {
	var m struct {
		Type    string `json:"type"`
		EventID string `json:"event_id"`
		Session object `json:"session"`
		Item    object `json:"item"`
		Audio   string `json:"audio"`
	}
	if err := json.Unmarshal(payload, &m); err != nil {
		m.Type = "message that is no event: " + err.Error()
	}
	t.take(payload, payload, "")
	switch m.Type {
	case "session.update":
		merge(t.session, m.Session)
		t.event("session.updated", object{"session": t.session})
	case "conversation.item.create":
		t.add(m.Item)
	case "input_audio_buffer.append":
		t.hear(payload, m.Audio)
	case "input_audio_buffer.commit":
		t.commit()
	case "input_audio_buffer.clear":
		t.heardIt = false
		t.event("input_audio_buffer.cleared", object{})
	case "response.create":
	default:
		e := failure("openai", http.StatusBadRequest, "", "the script has no "+m.Type)
		e["error"].(object)["event_id"] = m.EventID
		t.event("error", e)
	}
}

// merge puts more into an object, deep.
func merge(into, more object) {
	for key, value := range more {
		was, ok := into[key].(object)
		if now, isObject := value.(object); ok && isObject {
			merge(was, now)
			continue
		}
		into[key] = value
	}
}

// add tells of an item.
func (t *realtimeSocket) add(item object) {
	if item == nil {
		item = object{}
	}
	if item["id"] == nil {
		item["id"] = t.e.ids.Fresh("item_", llm.Base62, 21)
	}
	t.event("conversation.item.added", object{"item": item})
	t.event("conversation.item.done", object{"item": item})
}

// hear takes sound.
func (t *realtimeSocket) hear(payload []byte, audio string) {
	input, _ := t.session["audio"].(object)
	input, _ = input["input"].(object)
	if len(audio) > silence || input["turn_detection"] == nil {
		t.heardIt = true
		return
	}
	if t.heardIt {
		t.event("input_audio_buffer.speech_stopped", object{})
		t.commit()
		t.take([]byte(`{"type":"response.create"}`), payload, "") // the server asks in its place
	}
}

// commit makes an item of the sound.
func (t *realtimeSocket) commit() {
	t.heardIt = false
	id := t.e.ids.Fresh("item_", llm.Base62, 21)
	t.event("input_audio_buffer.committed", object{"item_id": id})
	t.add(object{"id": id, "type": "message", "role": "user", "content": []object{{"type": "input_audio", "transcript": nil}}})
}

// liveSocket is Gemini Live: https://ai.google.dev/api/live. A very short piece of sound is silence, after which it answers by itself.
// Its messages are binary, as the API's are.
type liveSocket struct {
	*socket
	heardIt bool // sound came that nobody answered
}

func newLiveSocket(s *socket) talker { return &liveSocket{socket: s} }

func (t *liveSocket) fails(string, int, string, string) {
	_ = t.conn.Close(websocket.StatusInvalidFramePayloadData, "Request contains an invalid argument.")
}

func (t *liveSocket) heard(payload []byte) {
	var m struct {
		Setup         json.RawMessage `json:"setup"`
		RealtimeInput *struct {
			Audio *struct {
				Data string `json:"data"`
			} `json:"audio"`
		} `json:"realtimeInput"`
	}
	if err := json.Unmarshal(payload, &m); err != nil {
		t.fails("", 0, "", "")
		return
	}
	t.take(payload, payload, "")
	switch in := m.RealtimeInput; {
	case m.Setup != nil:
		_ = t.send(object{"setupComplete": object{}}) // a client that is gone needs none
	case in != nil && in.Audio != nil && len(in.Audio.Data) > silence:
		t.heardIt = true
	case in != nil && in.Audio != nil && t.heardIt:
		t.take([]byte(`{"realtimeInput":{"activityEnd":{}}}`), payload, "") // the server asks in its place
		t.heardIt = false
	case in != nil:
		t.heardIt = false
	}
}
