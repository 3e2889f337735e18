package scriptedllm

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// liveSocket is Gemini Live: https://ai.google.dev/api/live. It keeps the setup and the contents. A very short piece of sound is
// silence, after which it answers by itself. Its messages are binary, as the API's are.
type liveSocket struct {
	*socket
	lanes   lanes
	setup   json.RawMessage // nil before it
	heardIt bool            // sound came that nobody answered

	mu       sync.Mutex // guards contents
	contents []json.RawMessage
}

func newLiveSocket(s *socket) talker { return &liveSocket{socket: s, lanes: lanes{work: &s.work}} }

func (t *liveSocket) opened() {}

// A liveMessage is one message of the client, which has one of these.
type liveMessage struct {
	Setup         json.RawMessage `json:"setup"`
	ClientContent *struct {
		Turns        []json.RawMessage `json:"turns"`
		TurnComplete bool              `json:"turnComplete"`
	} `json:"clientContent"`
	RealtimeInput *struct {
		Text  string `json:"text"`
		Audio *struct {
			Data string `json:"data"`
		} `json:"audio"`
		ActivityEnd *struct{} `json:"activityEnd"`
	} `json:"realtimeInput"`
	ToolResponse *struct {
		FunctionResponses []object `json:"functionResponses"`
	} `json:"toolResponse"`
}

func (t *liveSocket) heard(payload []byte) {
	var m liveMessage
	err := json.Unmarshal(payload, &m)
	switch {
	case err != nil:
		_ = t.conn.Close(websocket.StatusInvalidFramePayloadData, "Request contains an invalid argument.")
	case m.Setup != nil:
		t.setup = m.Setup
		_ = t.send(object{"setupComplete": object{}}) // a client that is gone needs none
	case m.ClientContent != nil:
		t.keep(m.ClientContent.Turns...)
		if m.ClientContent.TurnComplete {
			t.respond(payload)
		}
	case m.RealtimeInput != nil:
		in := m.RealtimeInput
		if in.Text != "" {
			t.keep(encode(object{"role": "user", "parts": []object{{"text": in.Text}}}))
		}
		quiet := in.Audio != nil && len(in.Audio.Data) <= silence && t.heardIt
		t.heardIt = in.Audio != nil && !quiet
		if in.Text != "" || quiet || in.ActivityEnd != nil {
			t.respond(payload)
		}
	case m.ToolResponse != nil:
		var parts []object
		for _, r := range m.ToolResponse.FunctionResponses {
			parts = append(parts, object{"functionResponse": r})
		}
		t.keep(encode(object{"role": "user", "parts": parts}))
		t.respond(payload)
	}
}

func (t *liveSocket) keep(contents ...json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contents = append(t.contents, contents...)
}

// respond answers what was said so far.
func (t *liveSocket) respond(payload []byte) {
	given := t.setup
	t.lanes.do("", func() {
		t.mu.Lock()
		body, err := bodyOf(given, "contents", t.contents)
		t.mu.Unlock()
		var q geminiRequest
		var setup struct {
			Model            string `json:"model"`
			GenerationConfig struct {
				ResponseModalities []string `json:"responseModalities"`
			} `json:"generationConfig"`
		}
		if err == nil {
			err = json.Unmarshal(body, &q)
		}
		if err != nil || json.Unmarshal(body, &setup) != nil {
			_ = t.conn.Close(websocket.StatusInvalidFramePayloadData, "Request contains an invalid argument.")
			return
		}
		turn := gemini{}.turn(&q)
		turn.model = strings.TrimPrefix(setup.Model, "models/")
		t.answer(payload, "gemini", turn, body, func(re *reply, s *sink) {
			t.tell(re, s, slices.Contains(setup.GenerationConfig.ResponseModalities, "AUDIO"))
		})
	})
}

// tell sends the messages of one answer. A call of tools comes last, and nothing ends it but what the tools gave.
func (t *liveSocket) tell(re *reply, s *sink, spoken bool) {
	content := func(o object) { s.event("", object{"serverContent": o}) }
	modelTurn := func(part object) object { return object{"modelTurn": object{"parts": []object{part}}} }
	said := []object{}
	for _, piece := range re.pieces(re.answer.text) {
		if piece == "" {
			continue
		}
		if spoken {
			sound := base64.StdEncoding.EncodeToString([]byte(piece))
			content(modelTurn(object{"inlineData": object{"mimeType": "audio/pcm;rate=24000", "data": sound}}))
			content(object{"outputTranscription": object{"text": piece}})
		} else {
			content(modelTurn(object{"text": piece}))
		}
		said = append(said, object{"text": piece})
	}
	var calls []object
	for _, c := range re.answer.calls {
		calls = append(calls, object{"id": re.ids.fresh("function-call-", hexits, 16), "name": c.name, "args": c.args})
		said = append(said, object{"functionCall": calls[len(calls)-1]})
	}
	t.keep(encode(object{"role": "model", "parts": said}))
	if len(calls) > 0 {
		s.event("", object{"toolCall": object{"functionCalls": calls}})
		return
	}
	content(object{"generationComplete": true})
	s.event("", object{"serverContent": object{"turnComplete": true}, "usageMetadata": object{
		"promptTokenCount": re.inTokens, "responseTokenCount": re.outTokens(), "totalTokenCount": re.inTokens + re.outTokens(),
	}})
}
