package scriptedllm

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
)

// responsesSocket is the responses API over a WebSocket: https://developers.openai.com/api/docs/guides/websocket-mode. It remembers
// the conversations of its answers, for as long as the client stays.
type responsesSocket struct {
	*socket
	lanes lanes

	mu    sync.Mutex // guards talks
	talks map[string][]json.RawMessage
}

func newResponsesSocket(s *socket) talker {
	return &responsesSocket{socket: s, lanes: lanes{work: &s.work}, talks: make(map[string][]json.RawMessage)}
}

func (t *responsesSocket) opened() {}

// A responsesCreate is what of a message is no part of the request as HTTP has it.
type responsesCreate struct {
	Type     string          `json:"type"`
	Previous string          `json:"previous_response_id"`
	Input    json.RawMessage `json:"input"`
	Generate *bool           `json:"generate"`
	Stream   string          `json:"stream_id"`
	Model    string          `json:"model"`
}

func (t *responsesSocket) heard(payload []byte) {
	var q responsesCreate
	err := json.Unmarshal(payload, &q)
	switch {
	case err != nil:
		t.fails(payload, "", http.StatusBadRequest, "", "message: "+err.Error())
	case q.Type != "response.create":
		t.fails(payload, q.Stream, http.StatusBadRequest, "", "the script has no "+q.Type)
	case !t.lanes.do(q.Stream, func() { t.create(payload, &q) }):
		t.fails(payload, q.Stream, http.StatusBadRequest, "websocket_stream_limit_reached", "too many lanes")
	}
}

// create answers one response.create.
func (t *responsesSocket) create(payload []byte, q *responsesCreate) {
	whole, ok := t.whole(q)
	if !ok {
		t.fails(payload, q.Stream, http.StatusBadRequest, "previous_response_not_found",
			"Previous response with id '"+q.Previous+"' not found.")
		return
	}
	if status := t.e.fault(encode(whole)); status != 0 {
		t.fails(payload, q.Stream, status, "", "the script wants this to fail once")
		return
	}
	body, err := bodyOf(payload, "input", whole)
	if err != nil {
		t.fails(payload, q.Stream, http.StatusBadRequest, "", err.Error())
		return
	}
	warm := q.Generate != nil && !*q.Generate
	turn := &turn{model: q.Model}
	if !warm {
		turn, err = responses{}.parse(t.r, body)
	}
	if err != nil {
		t.fails(payload, q.Stream, http.StatusBadRequest, "", err.Error())
		return
	}
	turn.stream = true
	t.reply(payload, q, whole, turn, warm)
}

// whole is the input of a message behind what it goes on from; false where that is not known.
func (t *responsesSocket) whole(q *responsesCreate) ([]json.RawMessage, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, ok := t.talks[q.Previous]
	if !ok && q.Previous != "" {
		return nil, false
	}
	var own []json.RawMessage
	if json.Unmarshal(q.Input, &own) != nil && len(q.Input) > 0 { // a bare text
		own = []json.RawMessage{encode(object{"type": "message", "role": "user", "content": q.Input})}
	}
	return append(slices.Clip(before), own...), true
}

// reply sends the script's answer to a turn, and remembers it. One that only warms up gets an id and nothing else.
func (t *responsesSocket) reply(payload []byte, q *responsesCreate, whole []json.RawMessage, turn *turn, warm bool) {
	e := t.e
	re := &reply{turn: turn, ids: e.ids, chunk: e.opts.Chunk, inTokens: tokens(encode(whole))}
	logged := e.request(t.r, payload, "openai", http.StatusOK)
	logged.Stream = true
	if !warm {
		re.answer = e.plan(turn)
		if len(re.answer.calls) > 0 {
			logged.Tool = re.answer.calls[0].name
		}
	}
	e.log(logged)
	s := t.sink(func(event object) { t.passes(event, q.Stream, whole) })
	if warm {
		responses{}.warm(re, s)
		return
	}
	if e.opts.Before != nil {
		s.wait(e.opts.Before(len(turn.tools) > 0))
	}
	responses{}.stream(re, s)
}

// passes names the lane in an event, and remembers the answer that one ends.
func (t *responsesSocket) passes(event object, lane string, whole []json.RawMessage) {
	if lane != "" {
		event["stream_id"] = lane
	}
	if event["type"] != "response.completed" {
		return
	}
	response, _ := event["response"].(object)
	id, _ := response["id"].(string)
	items, _ := response["output"].([]object)
	after := slices.Clip(whole)
	for _, item := range items {
		after = append(after, encode(item))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.talks[id] = after
}

// fails sends the error event. In a WebSocket its error is an object of its own.
func (t *responsesSocket) fails(payload []byte, lane string, status int, code, message string) {
	t.e.log(t.e.request(t.r, payload, "openai", status))
	event := openai{}.failure(status, message)
	event["type"], event["status"] = "error", status
	if lane != "" {
		event["stream_id"] = lane
	}
	if code != "" {
		event["error"].(object)["code"] = code
	}
	_ = t.send(event) // a client that is gone needs none
}

// warm sends the events of an answer in which nothing is generated.
func (d responses) warm(re *reply, s *sink) {
	response := d.response(re)
	s.event("response.created", object{"type": "response.created", "sequence_number": 0, "response": response})
	response["status"] = "completed"
	s.event("response.completed", object{"type": "response.completed", "sequence_number": 1, "response": response})
}
