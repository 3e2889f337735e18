//go:build agents

package agents

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// TestForks: pi and gemini-cli are forked at their second turn, with another answer, with another model, and with another call of a tool
// at their first. Before the point nothing reaches the endpoint; every fork is a recording that replays by itself.
func TestForks(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	run.Tool(t, "node")
	for _, name := range []string{"pi", "gemini-cli"} {
		r := &Recipes[slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == name })]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := r.program(t, modules)
			run.Once(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.Value, Gzip: true})
				server := httptest.NewServer(endpoint)
				defer server.Close()
				recordFrom(t, b, r, program, endpoint, server.URL)
				replayGreen(t, b)
				f := &forks{t: t, b: b, endpoint: endpoint}
				f.fork("answer", 0, "I did it in the manner of nobody.", "--from", "turn:2", "--set", "answer=I did it in the manner of nobody.")
				f.fork("model", 1, "equal up to turn 2", "--from", "turn:2", "--live", "--model", "another-model")
				f.fork("tool", 1, "equal up to turn 1", "--from", "turn:1", "--live", "--set", "answer.tool_calls.0.arguments.content=tulip\n")
			})
		})
	}
}

// forks are the forks of one recording.
type forks struct {
	t        *testing.T
	b        *run.Box
	endpoint *scriptedllm.Endpoint
}

// fork makes one that asks the endpoint so often and prints a text, and replays it.
func (f *forks) fork(name string, asks int, says string, args ...string) {
	f.t.Helper()
	rec, before := filepath.Join(f.b.Home, name+".rec"), len(f.endpoint.Requests())
	res := f.b.Tapedeck(slices.Concat([]string{"fork", f.b.Recording(), "-o", rec}, args)...)
	if res.Status != 0 || !strings.Contains(res.Stdout+res.Stderr, says) {
		f.t.Errorf("fork with another %s: %v", name, res)
		return
	}
	if n := len(f.endpoint.Requests()) - before; n != asks {
		f.t.Errorf("fork with another %s asked %d times, want %d: %v", name, n, asks, res)
	}
	if res := f.b.Tapedeck("replay", rec); res.Status != 0 {
		f.t.Errorf("replay of the fork with another %s: %v", name, res)
	}
}
