//go:build agents

package agents

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// The prompt of the recording and the one that must be told from it.
const (
	prompt  = "write hello.txt with the text marigold"
	changed = "write hello.txt with the text chrysanthemum"
)

func TestMain(m *testing.M) { run.Main(m) }

func TestAgents(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-agents.sh fills one")
	}
	run.Tool(t, "node")
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			program := r.program(t, modules)
			run.Each(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				record(t, b, r, program)
				replayGreen(t, b)
				replayRed(t, b, r.command(program, changed))
			})
		})
	}
}

// record runs the agent against an endpoint that is gone when record returns.
func record(t *testing.T, b *run.Box, r recipe, program []string) {
	t.Helper()
	endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.value, Gzip: true})
	server := httptest.NewServer(endpoint)
	defer server.Close()
	res := b.Record(map[string]string{r.host: server.URL}, r.command(program, prompt)...)
	if res.Status != 0 {
		t.Fatalf("record: %v", res)
	}
	if content, err := os.ReadFile(filepath.Join(b.Work, "hello.txt")); err != nil || string(content) != "marigold\n" {
		t.Fatalf("the agent's file: %q, %v\n%v", content, err, res)
	}
	if n := len(endpoint.Requests()); n < 2 {
		t.Errorf("%d requests reached the endpoint, want a turn and the one after the tool", n)
	}
	if res := b.Verify(); res.Status != 0 {
		t.Errorf("verify: %v", res)
	}
	if found := b.Holds(r.value); found != nil {
		t.Errorf("the API key stands in %v", found)
	}
	if err := os.Remove(filepath.Join(b.Work, "hello.txt")); err != nil {
		t.Fatal(err)
	}
}

// replayGreen replays the recording as it is.
func replayGreen(t *testing.T, b *run.Box) {
	t.Helper()
	report, res := b.Replay()
	if res.Status != 0 || report == nil || len(report.Divergences) > 0 {
		t.Fatalf("replay: %v", res)
	}
	if report.Crossed == nil || *report.Crossed != 0 {
		t.Errorf("crossed: %v, want 0", report.Crossed)
	}
	if _, err := os.Stat(filepath.Join(b.Work, "hello.txt")); !os.IsNotExist(err) {
		t.Errorf("the replay left a file: %v", err)
	}
}

// replayRed replays the agent with another prompt, and wants the words that differ named.
func replayRed(t *testing.T, b *run.Box, argv []string) {
	t.Helper()
	report, res := b.Replay(argv...)
	if res.Status != 2 || report == nil {
		t.Fatalf("replay with another prompt: %v", res)
	}
	if said := causes(report); !strings.Contains(said, "marigold") || !strings.Contains(said, "chrysanthemum") {
		t.Errorf("the report does not show the changed words:\n%v", res)
	}
}

// causes is all that a report says on why something differs.
func causes(r *fidelity.Report) string {
	var b strings.Builder
	for _, d := range r.Divergences {
		b.WriteString(d.Message + "\n" + d.Cause + "\n")
	}
	for _, q := range r.Refused {
		b.WriteString(q.Cause + "\n")
	}
	return b.String()
}
