//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A tooled is an agent that is told of two MCP servers.
type tooled struct {
	agent string
	path  string                                   // of its settings, below HOME
	reads func(path string) scriptedllm.Call       // a tool of its own that shows a file
	text  func(servers map[string][]string) string // the settings, given the command lines of the servers
}

// Server entries as agents write them.
type (
	commandArgs struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Trust   bool     `json:"trust"`
	}
	commandLine struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
)

var tooleds = []tooled{
	{agent: "gemini-cli", path: ".gemini/settings.json", reads: func(path string) scriptedllm.Call {
		return scriptedllm.Call{Tool: "read_file", Args: map[string]any{"file_path": path}}
	}, text: func(servers map[string][]string) string {
		entries := make(map[string]commandArgs)
		for name, argv := range servers {
			entries[name] = commandArgs{Command: argv[0], Args: argv[1:], Trust: true}
		}
		own := recipe("gemini-cli").Files[".gemini/settings.json"]
		return strings.TrimSuffix(own, "}") + `,"mcpServers":` + asJSON(entries) + "}"
	}},
	{agent: "codex", path: ".codex/config.toml", reads: func(path string) scriptedllm.Call {
		return scriptedllm.Call{Tool: "exec_command", Args: map[string]any{"cmd": "cat " + path + "; sleep 0.5"}} // it loses what comes at the very end
	}, text: func(servers map[string][]string) string {
		var b strings.Builder
		for name, argv := range servers { // strings and lists of them are written alike in JSON and TOML
			fmt.Fprintf(&b, "[mcp_servers.%s]\ncommand = %s\nargs = %s\n", name, asJSON(argv[0]), asJSON(argv[1:]))
		}
		return b.String()
	}},
	{agent: "opencode", path: ".config/opencode/opencode.json", reads: func(path string) scriptedllm.Call {
		return scriptedllm.Call{Tool: "bash", Args: map[string]any{"command": "cat " + path, "description": "look"}}
	}, text: func(servers map[string][]string) string {
		entries := make(map[string]commandLine)
		for name, argv := range servers {
			entries[name] = commandLine{Type: "local", Command: argv, Enabled: true}
		}
		return asJSON(map[string]any{"mcp": entries})
	}},
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // what the tests write themselves
	}
	return string(b)
}

// TestServers has an agent use two MCP servers at once, one that writes a file of the work tree and one that keeps its notes, records
// it, takes the servers away, and replays.
func TestServers(t *testing.T) {
	modules, servers := os.Getenv("TAPEDECK_AGENTS"), os.Getenv("TAPEDECK_MCP")
	if modules == "" || servers == "" {
		t.Skip("TAPEDECK_AGENTS and TAPEDECK_MCP name no node_modules folders; integration/install-npm.sh fills them")
	}
	servers, err := filepath.Abs(servers)
	if err != nil {
		t.Fatal(err)
	}
	node := run.Tool(t, "node")
	for i := range tooleds {
		x := &tooleds[i]
		t.Run(x.agent, func(t *testing.T) {
			t.Parallel()
			r := recipe(x.agent)
			program := r.program(t, modules)
			run.Each(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				installed := filepath.Join(filepath.Dir(b.Home), "servers")
				if err := os.Symlink(servers, installed); err != nil {
					t.Fatal(err)
				}
				server := func(name string, args ...string) []string {
					return append([]string{node, filepath.Join(installed, "@modelcontextprotocol", "server-"+name, "dist", "index.js")}, args...)
				}
				b.WriteFile(filepath.Join(b.Home, x.path), x.text(map[string][]string{"files": server("filesystem", b.Work), "memory": server("memory")}))
				b.Setenv("MEMORY_FILE_PATH", filepath.Join(b.Home, "memory.jsonl"))
				recordTooled(t, b, x, program)
				if err := os.Remove(installed); err != nil {
					t.Fatal(err)
				}
				replayGreen(t, b)
				report := replayRed(t, b, "marigold", "chrysanthemum", r.Command(program, "plant a chrysanthemum")...)
				for _, name := range called {
					if want := (fidelity.RequestRef{Method: "tools/call", URL: "mcp:" + name}); !slices.ContainsFunc(report.Unasked, func(q fidelity.RequestRef) bool {
						return q.Method == want.Method && q.URL == want.URL
					}) {
						t.Errorf("the report does not name the call of %s that did not come: %+v", name, report.Unasked)
					}
				}
			})
		})
	}
}

// called are the servers as they name themselves, in the order of their calls.
var called = []string{"secure-filesystem-server", "memory-server"}

// recordTooled records a session of four turns: a tool of one server, a tool of the other, the agent's own tool that shows what the
// first one wrote (a replay that does not write it again is red), and a text.
func recordTooled(t *testing.T, b *run.Box, x *tooled, program []string) {
	t.Helper()
	r := recipe(x.agent)
	hello := filepath.Join(b.Work, "hello.txt")
	entity := map[string]any{"name": "marigold", "entityType": "flower", "observations": []string{"yellow"}}
	endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.Value, Calls: []scriptedllm.Call{
		{Tool: "files_write_file", Args: map[string]any{"path": hello, "content": "marigold\n"}},
		{Tool: "memory_create_entities", Args: map[string]any{"entities": []any{entity}}},
		x.reads(hello),
	}})
	server := httptest.NewServer(endpoint)
	defer server.Close()
	res := b.Record(map[string]string{r.Host: server.URL}, r.Command(program, "plant a marigold")...)
	if res.Status != 0 {
		t.Fatalf("record: %v", res)
	}
	if content, err := os.ReadFile(hello); err != nil || string(content) != "marigold\n" {
		t.Fatalf("what the server wrote: %q, %v\n%v", content, err, res)
	}
	turns := endpoint.Requests()
	last := string(turns[len(turns)-1].Body)
	want := 4 // in the prompt, what was written to each server, and what the agent's own tool showed
	if strings.Contains(last, "previous_response_id") {
		want = 1 // the last one alone
	}
	if strings.Count(last, "marigold") < want {
		t.Errorf("after %d turns the agent had not seen the file: %s", len(turns), last)
	}
	if err := os.Remove(hello); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, b)
	if res := b.Verify(); res.Status != 0 {
		t.Errorf("verify: %v", res)
	}
	if got := toolCalls(t, b); !slices.Equal(got, called) {
		t.Errorf("on the tape stand calls of tools of %q, want %q", got, called)
	}
}

// toolCalls lists the servers of which tools were called.
func toolCalls(t *testing.T, b *run.Box) (out []string) {
	t.Helper()
	for _, k := range kinds(t, b) {
		if k, ok := k.(*tape.MCPJSONRPC); ok && k.Method == "tools/call" {
			out = append(out, k.Server)
		}
	}
	return out
}
