//go:build agents

package agents

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// sdkAgent is a program of the OpenAI Agents SDK: its tools take unlike times, run side by side, and it traces.
//
//go:embed testdata/sdk_agent.cjs
var sdkAgent string

// shells is a tapedeck.yaml for agents that name what their shells do by the time and by random numbers: how many of either they have
// drawn by then depends on the moment.
const shells = `masks:
  add:
    - {name: login-shell, pattern: 'copilot_login_env_snapshot_([0-9a-f]+_[0-9a-f]+)'}
    - {name: shell-snapshot, pattern: 'snapshot-bash-([0-9]+-[0-9a-z]+)'}
    - {name: shell-path, pattern: 'PATH_END_([0-9a-z]+)'}
    - {name: shell-cwd, pattern: 'claude-([0-9a-f]{4})-cwd'}
`

// busyCues are the scene of each agent: two tools and more in one turn, then a file.
func busyCues(name, work string) map[string][]step {
	file := filepath.Join(work, "hello.txt")
	bash := func(tool, command string) toolCall {
		return toolCall{tool, map[string]any{"command": command, "description": "look"}}
	}
	beside := []toolCall{bash("Bash", "sleep 0.2; echo one"), bash("Bash", "echo two"), {"Read", map[string]any{"file_path": "/etc/hosts"}}}
	write := toolCall{"Write", map[string]any{"file_path": file, "content": "marigold\n"}}
	switch name {
	case "copilot":
		beside = []toolCall{bash("bash", "sleep 0.2; echo one"), {"view", map[string]any{"path": "/etc/hosts"}}}
		write = toolCall{"create", map[string]any{"path": file, "file_text": "marigold\n"}}
	case "openai-agents":
		beside = []toolCall{{"slow", map[string]any{"text": "one"}}, {"quick", map[string]any{"text": "two"}}}
		write = toolCall{"write", map[string]any{"path": file, "text": "marigold\n"}}
	}
	return map[string][]step{"errand alpha": {{say: "I look.", calls: beside}, {say: "I write.", calls: []toolCall{write}}, {say: "Done."}}}
}

// TestBusy records each agent of Busy and replays it $TAPEDECK_AGENTS_REPLAYS times, once by default: all of them green.
func TestBusy(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	run.Tool(t, "node")
	for i := range Busy {
		r := &Busy[i]
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			program := r.program(t, modules)
			run.Once(t, func(t *testing.T, b *run.Box) { r.busy(t, b, program, modules) })
		})
	}
}

// busy records the agent in its scene, and replays it.
func (r *Recipe) busy(t *testing.T, b *run.Box, program []string, modules string) {
	r.prepare(b)
	b.WriteFile(filepath.Join(b.Work, "tapedeck.yaml"), shells)
	if r.Name == "openai-agents" {
		script := filepath.Join(b.Work, "agent.cjs")
		b.WriteFile(script, sdkAgent)
		b.Setenv("MODULES", modules)
		program[1] = script
	}
	server := httptest.NewServer(beside(newScene(r.Value, busyCues(r.Name, b.Work))))
	res := b.Record(map[string]string{r.Host: server.URL}, r.Command(program, "errand alpha: go")...)
	server.Close()
	file := filepath.Join(b.Work, "hello.txt")
	if content, err := os.ReadFile(file); res.Status != 0 || err != nil || string(content) != "marigold\n" {
		t.Fatalf("record: %v\nthe agent's file: %q, %v", res, content, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	replays, green := count("TAPEDECK_AGENTS_REPLAYS", 1), 0
	for range replays {
		report, res := b.Replay()
		switch {
		case report == nil:
			t.Errorf("replay: %v", res)
		case res.Status == 0:
			green++
		default:
			t.Errorf("replay: %s", causes(report))
		}
		if report != nil {
			t.Logf("side traffic: %+v\nnotes: %s", report.Side, strings.Join(report.Notes, "\n"))
		}
	}
	t.Logf("%s: %d green of %d", r.Name, green, replays)
}

// beside answers what agents ask beside their calls, on their model's host.
func beside(model http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/completions"), strings.HasSuffix(path, "/responses"):
			model.ServeHTTP(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{}")
		}
	})
}
