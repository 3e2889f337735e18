package demoagent

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// A ran is what a run of the agent left.
type ran struct {
	status         int
	stdout, stderr string
	dir            string
}

func run(t *testing.T, h http.Handler, prompt string) ran {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	status := Run(context.Background(), &Options{
		Prompt: prompt, APIKey: "k", BaseURL: srv.URL, Dir: dir, Stdout: &stdout, Stderr: &stderr, Client: srv.Client(),
	})
	return ran{status: status, stdout: stdout.String(), stderr: stderr.String(), dir: dir}
}

func TestRunWritesTheFile(t *testing.T) {
	e := scriptedllm.New(&scriptedllm.Options{Key: "k", Gzip: true})
	got := run(t, e, "write notes/hello.txt")
	if got.status != 0 {
		t.Fatalf("status %d, stderr %q", got.status, got.stderr)
	}
	content, err := os.ReadFile(filepath.Join(got.dir, "notes", "hello.txt"))
	if err != nil || string(content) != "hello\n" {
		t.Errorf("file: %q, %v", content, err)
	}
	if n := len(e.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	for _, want := range []string{"I'll write notes/hello.txt.\n", "wrote 6 bytes"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("stdout %q lacks %q", got.stdout, want)
		}
	}
	if !strings.Contains(got.stdout, "tool: write_file") {
		t.Errorf("stdout %q does not name the tool", got.stdout)
	}
}

func TestRunStaysInItsDirectory(t *testing.T) {
	got := run(t, scriptedllm.New(nil), "write ../outside.txt")
	if got.status != 0 || !strings.Contains(got.stdout, "The tool failed") {
		t.Errorf("status %d, stdout %q: the model must hear that the tool failed", got.status, got.stdout)
	}
	if _, err := os.Stat(filepath.Join(got.dir, "..", "outside.txt")); !os.IsNotExist(err) {
		t.Errorf("a file outside the directory: %v", err)
	}
}

// failing answers the first n requests with a status and headers, then hands over.
func failing(n, status int, header http.Header, then http.Handler) (http.Handler, *int) {
	asked := new(int)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		if *asked > n {
			then.ServeHTTP(w, r)
			return
		}
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, `{"type":"error","error":{"type":"api_error","message":"nearest recorded request: seq 7"}}`)
	}), asked
}

func TestRetries(t *testing.T) {
	soon := http.Header{"Retry-After-Ms": {"1"}}
	never := http.Header{"X-Should-Retry": {"false"}, "Retry-After-Ms": {"1"}}
	always := http.Header{"X-Should-Retry": {"true"}, "Retry-After-Ms": {"1"}}
	tests := []struct {
		name      string
		failures  int
		status    int
		header    http.Header
		wantExit  int
		wantAsked int
	}{
		{"overloaded once", 1, 529, soon, 0, 3},
		{"rate limit twice", 2, 429, soon, 0, 4},
		{"conflict", 1, 409, soon, 0, 3},
		{"down for good", 9, 500, soon, 1, 3},
		{"bad request", 9, 400, soon, 1, 1},
		{"server says no", 9, 500, never, 1, 1},
		{"server says yes", 1, 400, always, 0, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, asked := failing(tt.failures, tt.status, tt.header, scriptedllm.New(nil))
			got := run(t, h, "write hello.txt")
			if got.status != tt.wantExit || *asked != tt.wantAsked {
				t.Errorf("exit %d after %d requests, want %d after %d", got.status, *asked, tt.wantExit, tt.wantAsked)
			}
			if tt.wantExit != 0 && !strings.Contains(got.stderr, "nearest recorded request: seq 7") {
				t.Errorf("stderr %q does not hold the provider's message", got.stderr)
			}
		})
	}
}

func TestStreamsThatEndBadly(t *testing.T) {
	tests := []struct{ name, stream string }{
		{"empty", ""},
		{"cut", "event: message_start\ndata: {\"type\":\"message_start\"}\n\n"},
		{"not JSON", "data: {\n\n"},
		{"error event", `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"},
		{"delta without block", `data: {"type":"content_block_delta","delta":{"text":"x"}}` + "\n\n"},
		{"stop without block", `data: {"type":"content_block_stop"}` + "\n\n"},
		{"input not JSON", `data: {"type":"content_block_start","content_block":{"type":"tool_use","name":"x"}}` + "\n\n" +
			`data: {"type":"content_block_delta","delta":{"partial_json":"{"}}` + "\n\n" +
			`data: {"type":"content_block_stop"}` + "\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, tt.stream)
			}), "write hello.txt")
			if got.status != 1 || got.stderr == "" {
				t.Errorf("status %d, stderr %q", got.status, got.stderr)
			}
		})
	}
}

func TestRunWithoutWhatItNeeds(t *testing.T) {
	for name, opts := range map[string]*Options{
		"no prompt":    {},
		"no directory": {Prompt: "write hello.txt", Dir: filepath.Join(t.TempDir(), "missing")},
	} {
		t.Run(name, func(t *testing.T) {
			if status := Run(context.Background(), opts); status != 1 {
				t.Errorf("status %d, want 1", status)
			}
		})
	}
}

func TestReadsFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in.txt"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if out, err := call(root, "read_file", []byte(`{"path":"in.txt"}`)); err != nil || out != "kept" {
		t.Errorf("read_file: %q, %v", out, err)
	}
	for _, bad := range []string{`{"path":"../in.txt"}`, `{"path":"/etc/hostname"}`, `{"path":"missing"}`, `[]`} {
		if _, err := call(root, "read_file", []byte(bad)); err == nil {
			t.Errorf("read_file %s: no error", bad)
		}
	}
	if _, err := call(root, "remove", []byte(`{}`)); err == nil {
		t.Error("a tool that is not there: no error")
	}
}
