package mcp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// handler serves a scene over HTTP.
func handler(t *testing.T, lines ...string) *httptest.Server {
	t.Helper()
	s, err := recorded(t, append([]string{initialize, initResult, initialized}, lines...)...).book(nil).Named("")
	if err != nil {
		t.Fatal(err)
	}
	return serveHere(t, s.Handler(t.Context(), &mcp.ServeOptions{}))
}

// post sends a message and returns the answer; header is a list of names and values.
func post(t *testing.T, srv *httptest.Server, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return do(t, srv, http.MethodPost, body, header...)
}

func do(t *testing.T, srv *httptest.Server, method, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestSessionsOverHTTP(t *testing.T) {
	t.Parallel()
	srv := handler(t, callTool(2, "now", `{}`), result(2, "first"), callTool(3, "now", `{}`), result(3, "second"))
	call := as("7", callTool(0, "now", `{}`))
	var sessions []string
	for range 2 { // each has the tape for itself
		res, body := post(t, srv, said(initialize))
		id := res.Header.Get("Mcp-Session-Id")
		if res.StatusCode != 200 || id == "" || body != said(initResult) {
			t.Fatalf("initialize: %d, session %q, %s", res.StatusCode, id, body)
		}
		if res, _ := post(t, srv, said(initialized), "Mcp-Session-Id", id); res.StatusCode != http.StatusAccepted {
			t.Errorf("a notification: %d", res.StatusCode)
		}
		for _, want := range []string{"first", "second", "second"} {
			if res, body := post(t, srv, call, "Mcp-Session-Id", id); body != as("7", result(0, want)) || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("the answer is %s, want %s", body, want)
			}
		}
		sessions = append(sessions, id)
	}
	if sessions[0] == sessions[1] {
		t.Error("two clients have one session")
	}
	if res, _ := do(t, srv, http.MethodDelete, "", "Mcp-Session-Id", sessions[0]); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	for _, gone := range []string{sessions[0], "no-such"} {
		if res, _ := post(t, srv, call, "Mcp-Session-Id", gone); res.StatusCode != http.StatusNotFound {
			t.Errorf("a session that is gone: %d", res.StatusCode)
		}
	}
	if _, body := post(t, srv, call, "Mcp-Session-Id", sessions[1]); body != as("7", result(0, "second")) {
		t.Errorf("the other session: %s", body)
	}
}

func TestRefusalsOverHTTP(t *testing.T) {
	t.Parallel()
	srv := handler(t, callTool(2, "a", `{}`), result(2, "A"))
	for _, c := range []struct {
		name, method, body string
		header             []string
		status             int
	}{
		{"GET", "GET", "", nil, http.StatusMethodNotAllowed},
		{"another page", "POST", said(initialize), []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{"a page of this host", "POST", said(initialize), []string{"Origin", "http://localhost:3000"}, http.StatusOK},
		{"a name that leads here", "POST", said(initialize), []string{"Host", "evil.example"}, http.StatusForbidden},
		{"no JSON", "POST", "hello", nil, http.StatusBadRequest},
		{"an empty batch", "POST", "[]", nil, http.StatusBadRequest},
		{"the versions without sessions", "POST", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, nil, http.StatusBadRequest},
		{"what is not on the tape", "POST", as("3", callTool(0, "b", `{}`)), nil, http.StatusOK},
	} {
		res, body := do(t, srv, c.method, c.body, c.header...)
		if res.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, res.StatusCode, c.status, body)
		}
	}
	if _, body := post(t, srv, as("3", callTool(0, "b", `{}`))); !strings.Contains(body, "not on the tape: tools/call b") {
		t.Errorf("the error is %s", body)
	}
}

// What the server said within a call comes in a stream before the answer, and what it asked waits for the response, which is another
// request.
func TestStreamOverHTTP(t *testing.T) {
	t.Parallel()
	const token = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"x"}}}`
	synctest.Test(t, func(t *testing.T) {
		srv := handler(t, "> "+token, `< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}`, result(2, "A"))
		res, body := post(t, srv, strings.ReplaceAll(token, `"x"`, `"y"`))
		want := "event: message\ndata: " + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"y","progress":1}}` +
			"\n\nevent: message\ndata: " + said(result(2, "A")) + "\n\n"
		if res.Header.Get("Content-Type") != "text/event-stream" || body != want {
			t.Errorf("%s: %q\nwant %q", res.Header.Get("Content-Type"), body, want)
		}
	})
}
