package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/otlp"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A spanTable is a receiver of OTLP over HTTP, which keeps spans by their ids, as receivers do.
type spanTable struct {
	mu    sync.Mutex
	spans map[string]otlp.Span
	took  func(otlp.Span) // nil, or told of each
	key   string          // that requests had
}

func newSpanTable(t *testing.T, took func(otlp.Span)) (*spanTable, string) {
	table := &spanTable{spans: make(map[string]otlp.Span), took: took}
	server := httptest.NewServer(table)
	t.Cleanup(server.Close)
	return table, server.URL
}

func (s *spanTable) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var r struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []otlp.Span }
		}
	}
	if err := json.NewDecoder(q.Body).Decode(&r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = q.Header.Get("Authorization")
	for _, span := range r.ResourceSpans[0].ScopeSpans[0].Spans {
		s.spans[span.TraceID+span.SpanID] = span
		if s.took != nil {
			s.took(span)
		}
	}
}

// all is what came, as JSON.
func (s *spanTable) all(t *testing.T) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(s.spans)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// recorded runs record in a directory of its own and returns what it said, and the directory.
func recordedWith(t *testing.T, script string, args ...string) (dir, errs string) {
	t.Helper()
	if !deck.Diagnose().Works {
		t.Skip("no jail can be made here")
	}
	homed(t)
	dir = t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(scriptedllm.New(nil))
	t.Cleanup(model.Close)
	args = append([]string{"record", "-o", "a.rec", "--upstream", "api.anthropic.com=" + model.URL}, args...)
	status, out, errs := said(append(args, "--", "sh", "-c", strings.ReplaceAll(script, "AGENT", exe+" quickstart agent"))...)
	if status != 0 {
		t.Fatalf("record ended with %d\n%s%s", status, out, errs)
	}
	return dir, errs
}

// TestRecordSpans: spans come while the run goes on, are those that an export gives, and the keys of the receiver reach neither the
// program nor the recording.
func TestRecordSpans(t *testing.T) {
	const key = "sk9dhw7Gq2LmZx81Ab"
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20"+key)
	var once sync.Once
	table, url := newSpanTable(t, nil)
	table.took = func(s otlp.Span) { // the program waits for this
		if strings.HasPrefix(s.Name, "chat ") {
			once.Do(func() { _ = os.WriteFile("go", nil, 0o600) })
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	dir, errs := recordedWith(t, `AGENT "write hello.txt"; while ! [ -e go ]; do sleep 0.02; done; env; echo `+key, "--otlp", "env", "--otlp-content")
	if !strings.Contains(errs, "spans go to "+url+"/v1/traces while it runs, with prompts") || strings.Contains(errs, "not sent") {
		t.Errorf("it said:\n%s", errs)
	}
	live := make(map[string]otlp.Span)
	for id, s := range table.spans {
		live[id] = s
	}
	if table.key != "Bearer "+key || len(live) < 4 || !strings.Contains(table.all(t), "write hello.txt") {
		t.Errorf("%q, %s", table.key, table.all(t))
	}
	if status, _, errs := said("export", "a.rec", "--otlp", url, "--otlp-content"); status != 0 {
		t.Fatal(errs)
	}
	if !reflect.DeepEqual(live, table.spans) {
		for id, s := range table.spans {
			if !reflect.DeepEqual(s, live[id]) {
				t.Errorf("live: %+v\nexported: %+v", live[id], s)
			}
		}
	}
	_, out, _ := said("show", "a.rec", "--json")
	if !strings.Contains(out, "hello.txt") {
		t.Fatal(out)
	}
	err := filepath.WalkDir(filepath.Join(dir, "a.rec"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(key)) || bytes.Contains(b, []byte("OTEL_EXPORTER_OTLP_HEADERS=")) {
			t.Errorf("%s has it: %s", path, b)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRecordSpansLost: a receiver that is down, or refuses, costs the run nothing; the end says what to do, which then sends all.
func TestRecordSpansLost(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	host := strings.TrimPrefix(down.URL, "http://")
	_, errs := recordedWith(t, `echo done`, "--otlp", "http://ann:hunter2secret@"+host+"?api_key=Zx8Kq2Lm")
	if !strings.Contains(errs, "1 of 1 spans were not sent: ") || !strings.Contains(errs, "tapedeck export a.rec --otlp http://***@"+host+"/v1/traces?*** sends them all") {
		t.Errorf("it said:\n%s", errs)
	}
	if strings.Contains(errs, "hunter2secret") || strings.Contains(errs, "Zx8Kq2Lm") {
		t.Errorf("a key of the receiver is shown:\n%s", errs)
	}
	table, url := newSpanTable(t, nil)
	if status, _, errs := said("export", "a.rec", "--otlp", url); status != 0 || !strings.Contains(table.all(t), "invoke_agent sh") {
		t.Errorf("%s%s", errs, table.all(t))
	}
	for _, args := range [][]string{{"--otlp-content"}, {"--otlp", "localhost:4318"}, {"--otlp", "env"}} {
		if status, _, errs := said(append(append([]string{"record"}, args...), "--", "true")...); status != 125 || !strings.Contains(errs, "http://") && !strings.Contains(errs, "--otlp URL") && !strings.Contains(errs, "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("%q: status %d\n%s", args, status, errs)
		}
	}
}

// TestServeSpans: runs, turns and verdicts of a daemon are spans of one trace; without content unless asked for.
func TestServeSpans(t *testing.T) {
	for _, content := range []bool{false, true} {
		home := homed(t)
		table, url := newSpanTable(t, nil)
		rules := filepath.Join(home, "p.yaml")
		if err := os.WriteFile(rules, []byte("- {name: no_sudo, rule: deny_tool_param, target: bash, key: command, pattern: sudo}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data"), "--otlp", url, "--policies", rules}
		if content {
			args = append(args, "--otlp-content")
		}
		at, stop := serving(t, args...)
		run := oneRun(t, at.URL, "list it")
		c, err := client.Dial(t.Context(), at.URL, &client.Options{AgentID: "coder"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.CheckPolicy(t.Context(), rpcapi.PolicyCheckParams{Tool: "bash", Parameters: []byte(`{"command":"sudo ls"}`), RunID: run.ID}); err != nil {
			t.Fatal(err)
		}
		if err := run.Complete(t.Context(), rpcapi.Outcome{Status: "failure", Summary: "no luck"}); err != nil {
			t.Fatal(err)
		}
		res, err := http.Get("http" + strings.TrimPrefix(at.URL, "ws") + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		metrics, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(metrics), "tapedeck_daemon_otlp_spans_dropped_total 0") {
			t.Errorf("%s", metrics)
		}
		if status := stop(); status != 0 {
			t.Fatal(status)
		}
		got := table.all(t)
		for _, want := range []string{`"invoke_agent coder"`, `"execute_tool bash"`, "policy_rejected", "no_rm", "policy deny bash", "no_sudo", `"failure"`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is not in\n%s", want, got)
			}
		}
		if strings.Contains(got, "list it") != content || strings.Contains(got, `command\":\"ls`) != content || strings.Contains(got, "no luck") != content {
			t.Errorf("content %v:\n%s", content, got)
		}
		traces := make(map[string]bool)
		for _, s := range table.spans {
			traces[s.TraceID] = true
		}
		if len(table.spans) != 4 || len(traces) != 1 {
			t.Errorf("%d spans of %d traces", len(table.spans), len(traces))
		}
	}
}
