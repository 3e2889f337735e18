//go:build commands

package commands

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

//go:embed testdata/agent.py
var agent string

func TestMain(m *testing.M) { run.Main(m) }

const replays = 3

// TestCommands tells of each account how many commands were green each time.
func TestCommands(t *testing.T) {
	counts := make(map[string]*count)
	for _, r := range rows {
		if r.short || os.Getenv("TAPEDECK_LONG") != "" {
			t.Run(r.name, func(t *testing.T) {
				for _, tool := range r.tools {
					run.Tool(t, tool)
				}
				if r.program != nil {
					r.command = r.program.build(t)
				}
				run.Each(t, func(t *testing.T, b *run.Box) { r.judge(t, b, counts) })
			})
		}
	}
	for as, c := range counts {
		t.Logf("%s: %d of %d commands green %d times of %d; red: %s", as, c.green, c.tried, replays, replays, strings.Join(c.red, ", "))
	}
}

// A count is of one account.
type count struct {
	tried, green int
	red          []string
}

func (r *row) judge(t *testing.T, b *run.Box, counts map[string]*count) {
	as := path.Base(t.Name())
	if counts[as] == nil {
		counts[as] = new(count)
	}
	c := counts[as]
	c.tried++
	bad := r.try(t, b)
	switch {
	case bad == "":
		c.green++
		return
	case r.red == "":
		t.Error(bad)
	default:
		t.Logf("%s: %s", r.red, bad)
	}
	c.red = append(c.red, r.name)
}

// record has the agent run a command.
func record(t *testing.T, b *run.Box, command string) {
	t.Helper()
	b.WriteFile(filepath.Join(b.Work, "agent.py"), agent)
	recordProgram(t, b, "agent.py", command)
}

// recordProgram records a program in Python against a model that is gone then.
func recordProgram(t *testing.T, b *run.Box, args ...string) run.Result {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(model))
	defer server.Close()
	res := b.Record(map[string]string{"api.openai.com": server.URL}, append([]string{run.Tool(t, "python3")}, args...)...)
	if res.Status != 0 {
		t.Fatalf("record: %v", res)
	}
	return res
}

// try records and replays a command; it tells what was not faithful.
func (r *row) try(t *testing.T, b *run.Box) string {
	record(t, b, r.command)
	for n := range replays {
		if report, res := b.Replay(); res.Status != 0 || report == nil {
			return fmt.Sprintf("replay %d: %v", n+1, res)
		}
	}
	return ""
}

// model asks for the command that the first message names, and says done when it has its result.
func model(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Role, Content string }
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Messages) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	message := map[string]any{"role": "assistant", "content": "done"}
	if len(asked.Messages) == 1 {
		command, _ := json.Marshal(map[string]string{"command": strings.TrimPrefix(asked.Messages[0].Content, "run: ")})
		message = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": "call_1", "type": "function", "function": map[string]any{"name": "bash", "arguments": string(command)},
		}}}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5", "choices": []any{
		map[string]any{"index": 0, "message": message, "finish_reason": "stop"},
	}})
}
