//go:build agents

package agents

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// TestTitle records opencode with its title, which it asks for beside the first turn, answered late and early, and replays each
// $TAPEDECK_AGENTS_REPLAYS times, once by default: all of them faithful.
func TestTitle(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder")
	}
	r := &Recipes[slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == "opencode" })]
	program := r.program(t, modules)
	waits := map[string]func(tools bool) time.Duration{
		"late":  func(tools bool) time.Duration { return map[bool]time.Duration{false: 3 * time.Second}[tools] },
		"early": func(tools bool) time.Duration { return map[bool]time.Duration{true: 2 * time.Second}[tools] },
	}
	for name, before := range waits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run.Once(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.Value, Before: before})
				record(t, b, r, program, endpoint)
				if n := titles(t, endpoint); n != 1 {
					t.Fatalf("%d titles were asked for, want 1", n)
				}
				for range count("TAPEDECK_AGENTS_REPLAYS", 1) {
					replayGreen(t, b)
				}
			})
		})
	}
}

// titles counts the turns that declare no tools: those of the conversation declare some.
func titles(t *testing.T, e *scriptedllm.Endpoint) int {
	t.Helper()
	n := 0
	for _, q := range e.Requests() {
		var body struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(q.Body, &body); err != nil {
			t.Fatal(err)
		}
		if len(body.Tools) == 0 {
			n++
		}
	}
	return n
}
