package scriptedllm

import (
	"encoding/json"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

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
