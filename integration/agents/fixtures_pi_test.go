//go:build agents

package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFixturesPi: two runs of one session, and a session that is steered by RPC: an abort, a failure, a command of the person's,
// a branch with a summary, a compaction, another model, a message of an extension.
func TestFixturesPi(t *testing.T) {
	cues := map[string][]step{
		"errand alpha": {
			{think: "First I look.", say: "I look at both.", calls: []toolCall{
				{"read", map[string]any{"path": "missing.txt"}}, {"bash", map[string]any{"command": "echo found; exit 3"}},
			}},
			{say: "I write it.", calls: []toolCall{{"write", map[string]any{"path": "hello.txt", "content": "marigold\n"}}}},
			{say: "Written: hello.txt."},
		},
		"errand beta": {
			{calls: []toolCall{{"edit", map[string]any{"path": "hello.txt", "edits": []any{map[string]any{"oldText": "marigold", "newText": "tulip"}}}}}},
			{say: "A tulip now."},
		},
		"errand gamma":   {{say: "Well, let me", hold: true}},
		"errand delta":   {{status: 400}},
		"errand epsilon": {{calls: []toolCall{{"read", map[string]any{"path": "hello.txt"}}}}, {say: "It says tulip."}},
		"errand zeta":    {{say: "On the other branch."}},
		"errand eta":     {{say: "After the summary."}},
	}
	fixtures(t, "pi", cues, func(t *testing.T, st *stage) {
		base := []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "--thinking", "low"}
		t.Log(st.run(t, append(base, "-p", "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append(base, "-c", "-p", "errand beta: make it a tulip")...))
		st.save(t, "pi/resumed.jsonl", st.one(t, ".pi/agent/sessions/*/*.jsonl"))
		extension := filepath.Join(st.Home, "jump.js")
		st.WriteFile(extension, jump)
		st.rpc(t, append(base, "--mode", "rpc", "-e", extension), []string{
			`{"type":"prompt","message":"errand alpha: write hello.txt"}`,
			`{"type":"bash","command":"cat hello.txt; echo aside >&2"}`,
			`{"type":"prompt","message":"errand epsilon: read it","images":[{"type":"image","data":"` + dot + `","mimeType":"image/png"}]}`,
			`{"type":"prompt","message":"/jump"}`,
			`{"type":"prompt","message":"errand gamma: think it over"}`,
			`{"type":"abort"}`,
			`{"type":"prompt","message":"errand delta: go on"}`,
			`{"type":"set_model","provider":"anthropic","modelId":"claude-opus-4-5"}`,
			`{"type":"prompt","message":"errand zeta: what now"}`,
			`{"type":"compact"}`,
			`{"type":"prompt","message":"errand eta: and now"}`,
			`{"type":"set_session_name","name":"A tree"}`,
		})
		st.save(t, "pi/tree.jsonl", st.one(t, ".pi/agent/sessions/*/*.jsonl"))
	})
}

// jump is an extension of pi that goes back to the second prompt, with a summary of what it leaves, and says so.
const jump = `export default function (pi) {
  pi.registerCommand("jump", { description: "go back", handler: async (args, ctx) => {
    const users = ctx.sessionManager.getBranch().filter((e) => e.type === "message" && e.message.role === "user");
    await ctx.navigateTree(users[1].id, { summarize: true });
    pi.appendEntry("jump", { to: users[1].id });
    pi.sendMessage({ customType: "jump", content: "The person went back.", display: true });
  } });
}
`

// dot is a PNG of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// rpc has pi do one command after the other, each when the one before has ended; an abort comes once the model has begun.
func (st *stage) rpc(t *testing.T, args, commands []string) {
	t.Helper()
	argv := append([]string{"record", "-o", st.Recording(), "--upstream", st.recipe.Host + "=" + st.url, "--"}, st.program...)
	cmd := st.Command(append(argv, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	for i, c := range commands {
		fmt.Fprintln(stdin, c)
		var q struct{ Type, Message string }
		if err := json.Unmarshal([]byte(c), &q); err != nil {
			t.Fatal(err)
		}
		last := `"type":"response"`
		switch {
		case i+1 < len(commands) && strings.Contains(commands[i+1], `"abort"`):
			st.wait(t, "errand gamma")
			continue
		case q.Type == "prompt" && !strings.HasPrefix(q.Message, "/"), q.Type == "abort":
			last = `"type":"agent_end"`
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("after %s: %v", c, err)
			}
			if strings.Contains(line, last) || q.Type == "compact" && strings.Contains(line, `"command":"compact"`) {
				t.Logf("%.200s", line)
				break
			}
		}
	}
	stdin.Close()
	_, _ = io.Copy(io.Discard, lines)
	t.Log(cmd.Wait())
	if err := os.RemoveAll(st.Recording()); err != nil {
		t.Fatal(err)
	}
}
