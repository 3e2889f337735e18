package scriptedllm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A line is one WebSocket to an endpoint.
type line struct {
	t    *testing.T
	conn *websocket.Conn
}

// dialed opens a WebSocket to a new endpoint.
func dialed(t *testing.T, o *Options, path string) (*Endpoint, *line) {
	t.Helper()
	e := New(o)
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	conn, _, err := websocket.Dial(t.Context(), srv.URL+path, &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return e, &line{t, conn}
}

func (l *line) say(message string) {
	l.t.Helper()
	if err := l.conn.Write(l.t.Context(), websocket.MessageText, []byte(message)); err != nil {
		l.t.Fatal(err)
	}
}

// hear reads messages up to one of the types, or one that stop takes, and returns it.
func (l *line) hear(stop func(map[string]any) bool) (last map[string]any, all []map[string]any) {
	l.t.Helper()
	for {
		_, b, err := l.conn.Read(l.t.Context())
		if err != nil {
			l.t.Fatalf("after %v: %v", all, err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			l.t.Fatalf("%s: %v", b, err)
		}
		all = append(all, m)
		if stop(m) {
			return m, all
		}
	}
}

func ofType(types ...string) func(map[string]any) bool {
	return func(m map[string]any) bool {
		for _, want := range types {
			if m["type"] == want {
				return true
			}
		}
		return false
	}
}

var ended = ofType("response.completed", "error")

// create makes a response.create of a template of the responses API, with more members.
func create(body, more string) string {
	return `{"type":"response.create",` + more + strings.TrimSpace(body)[1:]
}

// TestResponsesOverASocket has the conversation that codex has: a warm-up, a call that goes on from it, its result.
func TestResponsesOverASocket(t *testing.T) {
	e, l := dialed(t, nil, "/v1/responses")
	l.say(create(`{"model":"gpt-5-codex","input":[{"type":"message","role":"developer","content":"Be brief."}]}`, `"generate":false,`))
	warm, all := l.hear(ended)
	if len(all) != 2 || warm["type"] != "response.completed" {
		t.Fatalf("warmed up with %v", all)
	}
	follow := func(m map[string]any) string {
		return `"previous_response_id":"` + at(m, "response", "id").(string) + `",`
	}
	l.say(create(fillIn(responsesTurn, "true", ""), follow(warm)))
	called, all := l.hear(ended)
	if at(called, "response", "output", 1, "name") != "exec_command" || len(all) < 6 {
		t.Fatalf("the first turn ended with %v", called)
	}
	id := at(called, "response", "output", 1, "call_id").(string)
	l.say(`{"type":"response.create","model":"gpt-5-codex",` + follow(called) +
		`"input":[{"type":"function_call_output","call_id":"` + id + `","output":"wrote 6 bytes"}]}`)
	done, _ := l.hear(ended)
	if got := at(done, "response", "output", 0, "content", 0, "text"); got != outcomeText {
		t.Errorf("the second turn said %v", got)
	}
	l.say(`{"type":"response.create","model":"m","previous_response_id":"resp_none","input":"hi"}`)
	if lost, _ := l.hear(ended); at(lost, "error", "code") != "previous_response_not_found" || lost["status"] != 400.0 {
		t.Errorf("got %v", lost)
	}
	if n := len(e.Requests()); n != 4 || e.Unknown() != 0 {
		t.Errorf("%d requests, %d unknown", n, e.Unknown())
	}
}

// TestLanesOfASocket asks in two lanes: each event names its own.
func TestLanesOfASocket(t *testing.T) {
	_, l := dialed(t, &Options{Text: "one two three"}, "/v1/responses")
	l.say(`{"type":"response.create","stream_id":"a","model":"m","input":"hi"}`)
	l.say(`{"type":"response.create","stream_id":"b","model":"m","input":"hi"}`)
	seen := map[any]bool{}
	_, all := l.hear(func(m map[string]any) bool {
		if m["type"] == "response.completed" {
			seen[m["stream_id"]] = true
		}
		return len(seen) == 2
	})
	if !seen["a"] || !seen["b"] {
		t.Errorf("ended: %v", seen)
	}
	for _, m := range all {
		if m["stream_id"] != "a" && m["stream_id"] != "b" {
			t.Errorf("an event of no lane: %v", m)
		}
	}
}

// TestSocketFaults fails once, whatever else differs in the message, and breaks where it is told to.
func TestSocketFaults(t *testing.T) {
	_, l := dialed(t, &Options{Faults: true}, "/v1/responses")
	ask := `{"type":"response.create","model":"m","client_metadata":{"n":"%"},"input":"fail once with 503"}`
	l.say(strings.Replace(ask, "%", "1", 1))
	if m, _ := l.hear(ended); m["status"] != 503.0 {
		t.Errorf("got %v", m)
	}
	l.say(strings.Replace(ask, "%", "2", 1))
	if m, _ := l.hear(ended); m["type"] != "response.completed" {
		t.Errorf("got %v", m)
	}
	_, cut := dialed(t, &Options{CutAfter: 900}, "/v1/responses")
	cut.say(`{"type":"response.create","model":"m","input":"hi"}`)
	var err error
	for err == nil {
		_, _, err = cut.conn.Read(t.Context())
	}
	if errors.Is(err, context.Canceled) || !errors.Is(err, io.EOF) && websocket.CloseStatus(err) != -1 {
		t.Errorf("the socket ended with %v", err)
	}
}

// TestSocketKey refuses a wrong key before the upgrade.
func TestSocketKey(t *testing.T) {
	srv := httptest.NewServer(New(&Options{Key: "k"}))
	defer srv.Close()
	_, resp, err := websocket.Dial(t.Context(), srv.URL+"/v1/responses", nil)
	if err == nil || resp == nil || resp.StatusCode != 401 {
		t.Errorf("%v, %v", resp, err)
	}
}
