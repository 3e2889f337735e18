package scriptedllm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	anthropicTurn = `{"model":"claude-sonnet-4-5","max_tokens":9,"stream":STREAM,"system":"Be brief.",
		"tools":[{"name":"read","input_schema":{"type":"object"}},{"name":"write","input_schema":{"type":"object",
		"properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"write hello.txt"}]}REST]}`
	anthropicRest = `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"write","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"wrote 6 bytes"}]}`

	chatTurn = `{"model":"gpt-4o","stream":STREAM,"stream_options":{"include_usage":true},
		"tools":[{"type":"function","function":{"name":"write_file","parameters":{"type":"object",
		"properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}}],
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"write hello.txt"}REST]}`
	chatRest = `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
		"function":{"name":"write_file","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"wrote 6 bytes"}`

	responsesTurn = `{"model":"gpt-5-codex","stream":STREAM,"instructions":"Be brief.",
		"tools":[{"type":"custom","name":"apply_patch"},{"type":"function","name":"exec_command","parameters":{"type":"object",
		"properties":{"cmd":{"type":"string"},"yield_time_ms":{"type":"integer"}},"required":["cmd"]}}],
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"You may."}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"write hello.txt"}]}REST]}`
	responsesRest = `,{"type":"function_call","call_id":"call_1","name":"exec_command","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_1","output":"wrote 6 bytes"}`

	geminiTurn = `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"write_file",
		"parameters":{"type":"OBJECT","properties":{"file_path":{"type":"STRING"},"content":{"type":"STRING"}},
		"required":["file_path","content"]}}]}],
		"contents":[{"role":"user","parts":[{"text":"write hello.txt"}]}REST]}`
	geminiRest = `,{"role":"model","parts":[{"functionCall":{"name":"write_file","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"write_file","response":{"output":"wrote 6 bytes"}}}]}`
	geminiPath = "/v1beta/models/gemini-2.5-flash:"

	outcomeText = "Done, hello.txt is written. The tool said: wrote 6 bytes"
)

// fillIn makes a request of a template.
func fillIn(template, stream, rest string) string {
	return strings.NewReplacer("STREAM", stream, "REST", rest).Replace(template)
}

func TestUnknownPathsAreCounted(t *testing.T) {
	e := New(nil)
	resp, body := postTo(t, e, "/v2/nothing", "{}")
	if resp.StatusCode != http.StatusNotFound || at(decode(t, body), "error", "message") == nil {
		t.Errorf("status %d, body %s", resp.StatusCode, body)
	}
	postTo(t, e, "/v1/messages", fillIn(anthropicTurn, "true", ""))
	if e.Unknown() != 1 {
		t.Errorf("%d unknown, want 1", e.Unknown())
	}
	got := e.Requests()[1]
	if got.Provider != "anthropic" || !got.Stream || got.Tool != "write" || got.Status != 200 || len(got.Body) == 0 {
		t.Errorf("logged %+v", got)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name, path, body string
		opts             *Options
		status           int
		where            []any
		want             any
	}{
		{"anthropic key", "/v1/messages", "{}", &Options{Key: "k"}, 401, []any{"error", "type"}, "authentication_error"},
		{"openai key", "/v1/responses", "{}", &Options{Key: "k"}, 401, []any{"error", "code"}, "invalid_api_key"},
		{"gemini key", geminiPath + "generateContent?key=x", "{}", &Options{Key: "k"}, 401, []any{"error", "status"},
			"UNAUTHENTICATED"},
		{"anthropic JSON", "/v1/messages", "{", nil, 400, []any{"type"}, "error"},
		{"chat JSON", "/v1/chat/completions", "[]", nil, 400, []any{"error", "type"}, "invalid_request_error"},
		{"responses empty", "/v1/responses", "{}", nil, 400, []any{"error", "type"}, "invalid_request_error"},
		{"gemini JSON", geminiPath + "generateContent", "", nil, 400, []any{"error", "status"}, "INVALID_ARGUMENT"},
		{"no messages", "/v1/messages", `{"model":"m"}`, nil, 400, []any{"error", "type"}, "invalid_request_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := post(t, tt.opts, tt.path, tt.body)
			if got := at(decode(t, body), tt.where...); resp.StatusCode != tt.status || got != tt.want {
				t.Errorf("status %d, %v; want %d, %v", resp.StatusCode, got, tt.status, tt.want)
			}
		})
	}
}

func TestKeyIsTaken(t *testing.T) {
	srv := httptest.NewServer(New(&Options{Key: "k"}))
	defer srv.Close()
	for header, value := range map[string]string{
		"X-Api-Key": "k", "Authorization": "Bearer k",
	} {
		r, err := http.NewRequest("POST", srv.URL+"/v1/messages", strings.NewReader(fillIn(anthropicTurn, "false", "")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, value)
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s: status %d", header, resp.StatusCode)
		}
	}
}

func TestSeedRepeatsAndItsAbsenceDoesNot(t *testing.T) {
	for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1/responses", geminiPath + "streamGenerateContent"} {
		body := fillIn(map[string]string{
			"/v1/messages": anthropicTurn, "/v1/chat/completions": chatTurn, "/v1/responses": responsesTurn,
		}[path], "true", "")
		if strings.HasPrefix(path, geminiPath) {
			body = fillIn(geminiTurn, "", "")
		}
		_, first := post(t, &Options{Seed: 7}, path, body)
		_, again := post(t, &Options{Seed: 7}, path, body)
		_, other := post(t, nil, path, body)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: seeded answers differ: %s", path, diff)
		}
		if first == other {
			t.Errorf("%s: an unseeded answer repeats", path)
		}
	}
}

func TestGzipIsFlushedPerEvent(t *testing.T) {
	// The delay is longer than the test may take: the first event must arrive before the second is written.
	srv := httptest.NewServer(New(&Options{Gzip: true, Delay: time.Hour}))
	defer srv.Close()
	resp, err := srv.Client().Post(srv.URL+"/v1/messages", "application/json",
		strings.NewReader(fillIn(anthropicTurn, "true", "")))
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Uncompressed {
		t.Error("the answer was not compressed")
	}
	line := make([]byte, len("event: message_start"))
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "event: message_start" {
		t.Errorf("first event %q, %v", line, err)
	}
	resp.Body.Close() // the client goes away, which ends the delay
}

func TestCutAfter(t *testing.T) {
	for _, gz := range []bool{false, true} {
		srv := httptest.NewServer(New(&Options{CutAfter: 100, Gzip: gz}))
		defer srv.Close()
		r, err := http.NewRequest("POST", srv.URL+"/v1/messages", strings.NewReader(fillIn(anthropicTurn, "true", "")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", map[bool]string{true: "gzip", false: "identity"}[gz])
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if len(b) != 100 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("gzip %v: %d bytes and %v, want 100 and an unexpected end", gz, len(b), err)
		}
	}
}

func TestChunkAndText(t *testing.T) {
	text := strings.Repeat("é", 300)
	_, body := post(t, &Options{Text: text}, "/v1/messages", fillIn(anthropicTurn, "true", anthropicRest))
	list := events(t, body)
	if got := joined(list, "delta", "text"); got != text {
		t.Errorf("text %q", got)
	}
	if n := strings.Count(body, "event: content_block_delta"); n != 38 {
		t.Errorf("%d deltas, want 38", n)
	}
}

func TestModels(t *testing.T) {
	srv := httptest.NewServer(New(nil))
	defer srv.Close()
	tests := []struct {
		path, version string
		where         []any
		want          any
	}{
		{"/v1/models", "", []any{"object"}, "list"},
		{"/v1/models", "2023-06-01", []any{"data", 0, "type"}, "model"},
		{"/v1beta/models", "", []any{"models", 0, "name"}, "models/gemini-2.5-flash"},
	}
	for _, tt := range tests {
		r, err := http.NewRequest("GET", srv.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Anthropic-Version", tt.version)
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := at(decode(t, string(body)), tt.where...); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", tt.path, got, err, tt.want)
		}
	}
}

// TestBefore holds a turn without tools back while one with tools is answered, until its client is gone.
func TestBefore(t *testing.T) {
	held := make(chan struct{})
	srv := httptest.NewServer(New(&Options{Before: func(tools bool) time.Duration {
		if tools {
			return 0
		}
		close(held)
		return time.Hour
	}}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	title, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"gpt-4o","messages":[{"role":"user","content":"A title, please."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(title)
		ended <- err
	}()
	<-held
	resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(fillIn(chatTurn, "false", "")))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the turn beside it: %+v, %v", resp, err)
	}
	resp.Body.Close()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the held answer ended with %v", err)
	}
}
