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

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// sdkAgent is a program of the OpenAI Agents SDK: its tools take unlike times, run side by side, and it traces.
//
//go:embed testdata/sdk_agent.cjs
var sdkAgent string

// notesServer is an MCP server with one tool.
//
//go:embed testdata/notes_server.cjs
var notesServer string

// A busyScene is what the model of an agent says, by its cues, and the file that comes of it, below the work tree.
type busyScene struct {
	cues map[string][]step
	file string
}

// sceneOf is a scene as an agent plays it whose tools have names of their own.
func sceneOf(r BusyRow, work string) busyScene {
	tools, file := toolsOf(r.Agent), filepath.Join(work, "hello.txt")
	first, second := step{say: "I look.", calls: tools.beside}, step{say: "I write.", calls: []toolCall{tools.write(file)}}
	s := busyScene{file: "hello.txt"}
	switch r.Scene {
	case "commit":
		first.calls, s.file = []toolCall{tools.shell("git init -q . && git -c user.email=a@b.test -c user.name=n commit -q --allow-empty -m first && git log --oneline")}, ".git/HEAD"
	case "retries":
		first.busy, second.busy = []int{http.StatusTooManyRequests, tools.overloaded}, []int{tools.overloaded, http.StatusTooManyRequests}
		first.calls = first.calls[:1]
	case "server":
		first.calls = []toolCall{{tools.remember, map[string]any{"text": "tulip"}}, {tools.remember, map[string]any{"text": "marigold"}}}
	}
	s.cues = map[string][]step{"errand alpha": {first, second, {say: "Done."}}}
	switch {
	case r.Scene == "helpers":
		s.cues = helpers(tools.write(file))
	case r.Scene == "server" && tools.find.name != "":
		s.cues["errand alpha"] = append([]step{{say: "I ask.", calls: []toolCall{tools.find}}}, s.cues["errand alpha"]...)
	}
	return s
}

// helpers has two helpers and a command in the background, which is over after both.
func helpers(write toolCall) map[string][]step {
	task := func(prompt string) toolCall {
		return toolCall{"Task", map[string]any{"description": "count", "prompt": prompt, "subagent_type": "general-purpose"}}
	}
	bash := func(command string, behind bool) toolCall {
		return toolCall{"Bash", map[string]any{"command": command, "description": "look", "run_in_background": behind}}
	}
	return map[string][]step{
		"errand alpha": {
			{calls: []toolCall{task("errand iota: count the words"), task("errand kappa: count the lines"), bash("sleep 0.5; echo behind", true)}},
			{say: "I write.", calls: []toolCall{write}},
			{say: "Done."},
		},
		"errand iota":  {{calls: []toolCall{bash("echo a b c | wc -w", false)}}, {say: "Three words."}},
		"errand kappa": {{calls: []toolCall{bash("echo a | wc -l", false)}}, {say: "One line."}},
	}
}

// agentTools are what an agent's tools are called.
type agentTools struct {
	beside     []toolCall // some that it runs side by side
	write      func(file string) toolCall
	shell      func(command string) toolCall
	remember   string   // of the MCP server
	find       toolCall // what makes that known; none where it is
	overloaded int      // the status of a provider that is
}

func toolsOf(agent string) agentTools {
	bash := func(tool, command string) toolCall {
		return toolCall{tool, map[string]any{"command": command, "description": "look"}}
	}
	const content = "marigold\n"
	switch {
	case strings.HasPrefix(agent, "copilot"):
		return agentTools{
			beside: []toolCall{bash("bash", "sleep 0.2; echo one"), {"view", map[string]any{"path": "/etc/hosts"}}},
			write: func(file string) toolCall {
				return toolCall{"create", map[string]any{"path": file, "file_text": content}}
			},
			shell:    func(command string) toolCall { return bash("bash", command) },
			remember: "notes-remember", overloaded: http.StatusServiceUnavailable,
		}
	case agent == "openai-agents":
		return agentTools{
			beside: []toolCall{{"slow", map[string]any{"text": "one"}}, {"quick", map[string]any{"text": "two"}}},
			write: func(file string) toolCall {
				return toolCall{"write", map[string]any{"path": file, "text": content}}
			},
			overloaded: http.StatusServiceUnavailable,
		}
	}
	return agentTools{
		beside: []toolCall{bash("Bash", "sleep 0.2; echo one"), bash("Bash", "echo two"), {"Read", map[string]any{"file_path": "/etc/hosts"}}},
		write: func(file string) toolCall {
			return toolCall{"Write", map[string]any{"file_path": file, "content": content}}
		},
		shell:    func(command string) toolCall { return bash("Bash", command) },
		remember: "mcp__notes__remember", find: toolCall{"ToolSearch", map[string]any{"query": "select:mcp__notes__remember"}},
		overloaded: 529,
	}
}

// TestBusy records each of BusyRows and replays it $TAPEDECK_AGENTS_REPLAYS times, once by default: all of them green. It is recorded as
// often as $TAPEDECK_AGENTS_ROUNDS says, once by default.
func TestBusy(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	run.Tool(t, "node")
	for _, row := range BusyRows {
		t.Run(row.Name(), func(t *testing.T) {
			t.Parallel()
			each := run.Once
			if os.Getenv("TAPEDECK_AGENTS_NOBODY") != "" {
				each = run.Each
			}
			for range count("TAPEDECK_AGENTS_ROUNDS", 1) {
				each(t, func(t *testing.T, b *run.Box) { row.test(t, b, modules) })
			}
		})
	}
}

// test records the agent in its scene, and replays it.
func (row BusyRow) test(t *testing.T, b *run.Box, modules string) {
	r := Busy[row.Agent]
	program := r.program(t, modules)
	r.prepare(b)
	if row.Agent == "openai-agents" {
		program[1] = filepath.Join(b.Work, "agent.cjs")
		b.WriteFile(program[1], sdkAgent)
		b.Setenv("MODULES", modules)
	}
	if row.Scene == "server" {
		r.Args = append(withServer(t, b, row.Agent), r.Args...)
	}
	scene := sceneOf(row, b.Work)
	server := httptest.NewServer(beside(newScene(r.Value, scene.cues)))
	res := b.Record(map[string]string{r.Host: server.URL}, r.Command(program, "errand alpha: go")...)
	server.Close()
	file := filepath.Join(b.Work, scene.file)
	if _, err := os.Stat(file); res.Status != 0 || err != nil {
		t.Fatalf("record: %v\nthe agent's file: %v", res, err)
	}
	if err := os.RemoveAll(file); err != nil {
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
			t.Logf("side traffic: %d\nmasked: %s\nnotes: %s", len(report.Side), pairs(report), strings.Join(report.Notes, "\n"))
		}
	}
	t.Logf("%s: %d green of %d", row.Name(), green, replays)
}

// pairs is what masks hid, a line each.
func pairs(r *fidelity.Report) string {
	var b strings.Builder
	for i := range r.MaskedPairs {
		b.WriteString("\n  " + r.MaskedPairs[i].String())
	}
	return b.String()
}

// withServer gives an agent the MCP server, and returns the arguments that it takes for that.
func withServer(t *testing.T, b *run.Box, agent string) []string {
	script := filepath.Join(b.Home, "notes_server.cjs")
	b.WriteFile(script, notesServer)
	config := fmt.Sprintf(`{"mcpServers":{"notes":{"type":"stdio","command":%q,"args":[%q],"tools":["*"]}}}`, run.Tool(t, "node"), script)
	if strings.HasPrefix(agent, "copilot") {
		b.WriteFile(filepath.Join(b.Home, ".copilot/mcp-config.json"), config)
		return nil
	}
	file := filepath.Join(b.Home, "mcp.json")
	b.WriteFile(file, config)
	return []string{"--mcp-config", file}
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
