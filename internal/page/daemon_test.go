package page_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A daemon's runs are documents; a decision is taken from a page of this origin alone.
func TestDaemonDocuments(t *testing.T) {
	d, err := daemon.Open(t.Context(), &daemon.Options{Socket: filepath.Join(t.TempDir(), "s"), NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Serve(context.Background()) }()
	t.Cleanup(func() { d.Shutdown(context.Background()); <-done })
	c, err := client.Dial(t.Context(), d.URL(), &client.Options{AgentID: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	run, err := c.Start(t.Context(), rpcapi.RunsStartParams{Intent: "ship it"})
	if err != nil {
		t.Fatal(err)
	}
	tool, output := "shell", json.RawMessage(`{"a":1}`)
	if _, err := run.RecordTurns(t.Context(), rpcapi.Turn{Tool: &tool, Output: output}); err != nil {
		t.Fatal(err)
	}
	shown := page.ShowRecordings("none", nil, nil)
	shown.Daemon = &page.Daemon{Client: c, URL: d.URL()}
	s := served(t, shown)
	for _, tt := range []struct{ path, want string }{
		{"library.json", `"daemon":"` + d.URL() + `"`},
		{"daemon.json", `"intent":"ship it","status":"in_progress"`},
		{"daemon/run/" + run.ID + ".json", `"tool":"shell","prompt":"","params":[],"output":[{"name":"a","text":"1","size":1}]`},
	} {
		if resp, body := ask(t, http.MethodGet, s.URL()+tt.path); resp.StatusCode != http.StatusOK || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s", tt.path, resp.StatusCode, body)
		}
	}
	origin := strings.TrimSuffix(s.URL()[:strings.LastIndex(strings.TrimSuffix(s.URL(), "/"), "/")], "/")
	for _, tt := range []struct {
		path    string
		headers []string
		want    int
	}{
		{"daemon/run/none.json", nil, http.StatusMethodNotAllowed},
		{"daemon/decide", nil, http.StatusMethodNotAllowed},
		{"daemon/decide", []string{"Origin", "http://example.com"}, http.StatusForbidden},
		{"daemon/decide", []string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"daemon/decide", []string{"Origin", origin}, http.StatusBadRequest},
	} {
		if resp, body := ask(t, http.MethodPost, s.URL()+tt.path, tt.headers...); resp.StatusCode != tt.want {
			t.Errorf("POST %s %v: %d %s, want %d", tt.path, tt.headers, resp.StatusCode, body, tt.want)
		}
	}
	if resp, _ := ask(t, http.MethodGet, s.URL()+"daemon/run/none.json"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("no such run: %d", resp.StatusCode)
	}
}
