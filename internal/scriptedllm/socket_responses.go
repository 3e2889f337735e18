package scriptedllm

import (
	"encoding/json"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

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
