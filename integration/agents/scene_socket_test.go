//go:build agents

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// A sceneSocket is a scene over one WebSocket of the Responses API: what is asked there is asked of the scene by HTTP, with all that
// was said before, and the events of its answer are messages.
type sceneSocket struct {
	scene *scene
	conn  *websocket.Conn
	ctx   context.Context
	path  string
	talks map[string][]any // by the id of the answer that each ends with
}

// serveSocket speaks with one client until it goes.
func (s *scene) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t := &sceneSocket{scene: s, conn: conn, ctx: ctx, path: r.URL.Path, talks: make(map[string][]any)}
	messages := make(chan []byte)
	go func() {
		defer cancel() // which ends an answer that holds
		defer close(messages)
		for {
			_, message, err := conn.Read(ctx)
			if err != nil {
				return
			}
			select {
			case messages <- message:
			case <-ctx.Done():
				return
			}
		}
	}()
	for message := range messages {
		t.answer(message)
	}
}

// answer answers one response.create.
func (t *sceneSocket) answer(message []byte) {
	var q map[string]any
	if json.Unmarshal(message, &q) != nil {
		return
	}
	previous, _ := q["previous_response_id"].(string)
	input, _ := q["input"].([]any)
	whole := append(append([]any{}, t.talks[previous]...), input...)
	if generate, ok := q["generate"].(bool); ok && !generate {
		response := map[string]any{"id": "resp_warm", "object": "response", "output": []any{}}
		for _, kind := range []string{"response.created", "response.completed"} {
			b, _ := json.Marshal(map[string]any{"type": kind, "response": response})
			_ = t.conn.Write(t.ctx, websocket.MessageText, b)
		}
		t.talks["resp_warm"] = whole
		return
	}
	for _, key := range []string{"type", "previous_response_id", "generate"} {
		delete(q, key)
	}
	q["input"] = whole
	body, _ := json.Marshal(q)
	r, _ := http.NewRequestWithContext(t.ctx, http.MethodPost, t.path, bytes.NewReader(body))
	out := &sceneMessages{t: t, whole: whole, header: make(http.Header), status: http.StatusOK}
	if t.scene.front != nil {
		t.scene.front.ServeHTTP(out, r)
	} else {
		t.scene.ServeHTTP(out, r)
	}
	out.end()
}

// sceneMessages takes an answer by HTTP and sends its events as messages.
type sceneMessages struct {
	t      *sceneSocket
	whole  []any
	header http.Header
	status int
	kept   bytes.Buffer
}

func (m *sceneMessages) Header() http.Header    { return m.header }
func (m *sceneMessages) WriteHeader(status int) { m.status = status }
func (m *sceneMessages) Flush()                 {}

func (m *sceneMessages) Write(b []byte) (int, error) {
	m.kept.Write(b)
	for m.status == http.StatusOK {
		event, rest, ok := bytes.Cut(m.kept.Bytes(), []byte("\n\n"))
		if !ok {
			break
		}
		for line := range strings.Lines(string(event)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				m.send([]byte(strings.TrimSpace(data)))
			}
		}
		m.kept = *bytes.NewBuffer(bytes.Clone(rest))
	}
	return len(b), nil
}

// send sends one event, and remembers the answer that one ends.
func (m *sceneMessages) send(data []byte) {
	var e struct {
		Type     string
		Response struct {
			ID     string
			Output []any
		}
	}
	if json.Unmarshal(data, &e) == nil && e.Type == "response.completed" {
		m.t.talks[e.Response.ID] = append(m.whole, e.Response.Output...)
	}
	_ = m.t.conn.Write(m.t.ctx, websocket.MessageText, data) // a client that is gone needs none
}

// end sends the error that an answer of another status is.
func (m *sceneMessages) end() {
	if m.status == http.StatusOK {
		return
	}
	var e map[string]any
	_ = json.Unmarshal(m.kept.Bytes(), &e)
	b, _ := json.Marshal(map[string]any{"type": "error", "status": m.status, "error": e["error"]})
	_ = m.t.conn.Write(m.t.ctx, websocket.MessageText, b)
}
