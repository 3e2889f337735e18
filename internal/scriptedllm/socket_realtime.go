package scriptedllm

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
)

// realtimeSocket is the Realtime API: https://platform.openai.com/docs/api-reference/realtime. It keeps one session and its items.
// Where turn_detection is on, a very short piece of sound is silence, after which it answers by itself.
type realtimeSocket struct {
	*socket
	lanes   lanes
	session object
	heardIt bool // sound came that was not committed

	mu    sync.Mutex // guards items
	items []object
}

func newRealtimeSocket(s *socket) talker {
	return &realtimeSocket{socket: s, lanes: lanes{work: &s.work}, session: object{
		"id": s.e.ids.fresh("sess_", hexits, 24), "object": "realtime.session", "type": "realtime",
		"model": s.r.URL.Query().Get("model"), "output_modalities": []any{"audio"},
	}}
}

// event sends one event.
func (t *realtimeSocket) event(kind string, o object) {
	o["type"], o["event_id"] = kind, t.e.ids.fresh("event_", hexits, 24)
	_ = t.send(o) // a client that is gone needs none
}

func (t *realtimeSocket) opened() { t.event("session.created", object{"session": t.session}) }

// A realtimeMessage is one event of the client.
type realtimeMessage struct {
	Type     string `json:"type"`
	EventID  string `json:"event_id"`
	Session  object `json:"session"`
	Item     object `json:"item"`
	Audio    string `json:"audio"`
	Response object `json:"response"`
}

func (t *realtimeSocket) heard(payload []byte) {
	var m realtimeMessage
	if err := json.Unmarshal(payload, &m); err != nil {
		m.Type = "message that is no event: " + err.Error()
	}
	switch m.Type {
	case "session.update":
		merged(t.session, m.Session)
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
		t.respond(payload, m.Response)
	default:
		e := openai{}.failure(http.StatusBadRequest, "the script has no "+m.Type)
		e["error"].(object)["event_id"] = m.EventID
		t.event("error", e)
	}
}

// merged puts more into an object, deep.
func merged(into, more object) {
	for key, value := range more {
		was, ok := into[key].(object)
		if now, isObject := value.(object); ok && isObject {
			merged(was, now)
			continue
		}
		into[key] = value
	}
}

// add takes an item of the client's.
func (t *realtimeSocket) add(item object) {
	if item == nil {
		item = object{}
	}
	if item["id"] == nil {
		item["id"] = t.e.ids.fresh("item_", base62, 21)
	}
	t.keep(item)
	t.event("conversation.item.added", object{"item": item})
	t.event("conversation.item.done", object{"item": item})
}

func (t *realtimeSocket) keep(items ...object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items = append(t.items, items...)
}

// hear takes sound.
func (t *realtimeSocket) hear(payload []byte, audio string) {
	input, _ := t.session["audio"].(object)
	input, _ = input["input"].(object)
	listens := input["turn_detection"] != nil
	if len(audio) > silence || !listens {
		t.heardIt = true
		return
	}
	if t.heardIt {
		t.event("input_audio_buffer.speech_stopped", object{})
		t.commit()
		t.respond(payload, nil)
	}
}

// commit makes an item of the sound.
func (t *realtimeSocket) commit() {
	t.heardIt = false
	id := t.e.ids.fresh("item_", base62, 21)
	t.event("input_audio_buffer.committed", object{"item_id": id})
	t.add(object{"id": id, "type": "message", "role": "user", "content": []object{{"type": "input_audio", "transcript": nil}}})
}

// respond answers what was said so far, with the settings of this one answer.
func (t *realtimeSocket) respond(payload []byte, settings object) {
	var asked object
	if json.Unmarshal(encode(t.session), &asked) != nil { // a copy, all the way down
		return
	}
	merged(asked, settings)
	t.lanes.do("", func() {
		t.mu.Lock()
		asked["input"] = slices.Clone(t.items)
		t.mu.Unlock()
		if own, ok := settings["input"]; ok {
			asked["input"] = own
		}
		body := encode(asked)
		turn, err := responses{}.parse(t.r, body)
		if err != nil {
			t.event("error", openai{}.failure(http.StatusBadRequest, err.Error()))
			return
		}
		t.answer(payload, "openai", turn, body, func(re *reply, s *sink) { t.tell(re, s, asked) })
	})
}

// tell sends the events of one answer.
func (t *realtimeSocket) tell(re *reply, s *sink, asked object) {
	response := object{
		"id": re.ids.fresh("resp_", base62, 21), "object": "realtime.response", "status": "in_progress", "output": []object{},
		"output_modalities": asked["output_modalities"], "conversation_id": "conv_script", "usage": nil,
	}
	emit := func(kind string, o object) {
		o["type"], o["event_id"] = kind, re.ids.fresh("event_", hexits, 24)
		if kind != "response.created" && kind != "response.done" {
			o["response_id"] = response["id"]
		}
		s.event(kind, o)
	}
	emit("response.created", object{"response": response})
	items := t.output(re, asked)
	for i, item := range items {
		ev := itemEvents{re: re, item: item, index: i, emit: emit}
		if item["type"] == "message" {
			ev.speech()
		} else {
			ev.call()
		}
	}
	responses{}.complete(re, response, items)
	usage := response["usage"].(object)
	usage["input_token_details"], usage["output_token_details"] = object{"cached_tokens": 0}, object{"text_tokens": re.outTokens()}
	delete(usage, "input_tokens_details")
	delete(usage, "output_tokens_details")
	if asked["conversation"] != "none" {
		t.keep(items...)
	}
	emit("response.done", object{"response": response})
}

// output are the items of an answer: those of responses, with sound in the place of text where sound is asked for.
func (t *realtimeSocket) output(re *reply, asked object) []object {
	items := responses{}.items(re)
	modes, _ := asked["output_modalities"].([]any)
	for _, item := range items {
		item["object"] = "realtime.item"
		if item["type"] == "message" && !slices.Contains(modes, any("text")) {
			item["content"] = []object{{"type": "output_audio", "transcript": re.answer.text}}
		}
	}
	return items
}

// speech emits a message that is spoken or written.
func (ev itemEvents) speech() {
	part := ev.item["content"].([]object)[0]
	kind, field := "response.output_text", "text"
	if part["type"] == "output_audio" {
		kind, field = "response.output_audio_transcript", "transcript"
	}
	ev.frame("content", []object{}, func() {
		for _, piece := range ev.re.pieces(ev.re.answer.text) {
			ev.send(kind+".delta", object{"content_index": 0, "delta": piece})
			if field == "transcript" {
				ev.send("response.output_audio.delta", object{"content_index": 0, "delta": base64.StdEncoding.EncodeToString([]byte(piece))})
			}
		}
		ev.send(kind+".done", object{"content_index": 0, field: ev.re.answer.text})
	})
}
