//go:build agents

package agents

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// TestToolResults has each agent run a command that prints a file of HOME, and replays it: faithful as it is, and not with one word
// of that file changed, which reaches the model as the tool's result alone.
func TestToolResults(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder")
	}
	run.Tool(t, "node")
	for i := range Recipes {
		r := &Recipes[i]
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			program := r.program(t, modules)
			run.Once(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				b.Setenv("OPENCODE_PERMISSION", `{"external_directory":"allow"}`) // else it does not look at HOME
				notes := filepath.Join(b.Home, "notes.txt")
				b.WriteFile(notes, "The gate is painted crimson.\n")
				// Some agents lose what a command prints at its very end.
				server := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Key: r.Value, Shell: "cat " + notes + "; sleep 0.5"}))
				res := b.Record(map[string]string{r.Host: server.URL}, r.Command(program, "look at the notes")...)
				server.Close()
				if res.Status != 0 {
					t.Fatalf("record: %v", res)
				}
				replayGreen(t, b)
				b.WriteFile(notes, "The gate is painted turquoise.\n")
				replayRed(t, b, "crimson", "turquoise")
			})
		})
	}
}
