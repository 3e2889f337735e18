package scriptedllm

import (
	"encoding/json"

	"github.com/coder/websocket"
)

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
