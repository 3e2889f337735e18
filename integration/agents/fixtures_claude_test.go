//go:build agents

package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFixturesClaude: a session of several runs, with calls beside each other, one that fails, a sub-agent, a failure of the
// model's, an abort and a history that is made shorter; and one that goes back and asks anew.
func TestFixturesClaude(t *testing.T) {
	bash := func(command string) toolCall {
		return toolCall{"Bash", map[string]any{"command": command, "description": "look"}}
	}
	cues := func() map[string][]step {
		return map[string][]step{
			"errand alpha": {
				{think: "First I look.", say: "I look at both.", calls: []toolCall{
					bash("ls missing.txt"), bash("echo found"), {"Read", map[string]any{"file_path": "/nowhere/missing.txt"}},
				}},
				{say: "I write it.", calls: []toolCall{{"Write", map[string]any{"file_path": "WORK/hello.txt", "content": "marigold\n"}}}},
				{say: "Written: hello.txt."},
			},
			"errand beta": {
				{calls: []toolCall{{"Task", map[string]any{
					"description": "count words", "prompt": "errand iota: count the words", "subagent_type": "general-purpose",
				}}}},
				{say: "The other one counted."},
			},
			"errand iota":  {{calls: []toolCall{bash("wc -w hello.txt")}}, {say: "One word."}},
			"errand gamma": {{say: "Well, let me", hold: true}},
			"errand delta": {{status: 400}},
			"errand zeta":  {{calls: []toolCall{bash("cat hello.txt")}}, {say: "On the other branch."}},
			"errand eta":   {{say: "After all that."}},
		}
	}
	fixtures(t, "claude-code", cues(), func(t *testing.T, st *stage) {
		inWork(st.scene.cues, st.Work)
		base := []string{"--dangerously-skip-permissions", "-p"}
		again := append([]string{"-c"}, base...)
		t.Log(st.run(t, append(base, "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append(again, "errand beta: have the words counted")...))
		t.Log(st.run(t, append(again, "/compact")...))
		t.Log(st.run(t, append(again, "errand delta: go on")...))
		st.interrupt(t, "errand gamma", append(again, "errand gamma: think it over")...)
		t.Log(st.run(t, append(again, "errand eta: and now")...))
		st.keep(t)
		st.save(t, "claude-code/session.jsonl", st.one(t, ".claude/projects/*/*.jsonl"))
		st.save(t, "claude-code/agent.jsonl", st.one(t, ".claude/projects/*/*/subagents/agent-*.jsonl"))
	})
	fixtures(t, "claude-code", cues(), func(t *testing.T, st *stage) {
		inWork(st.scene.cues, st.Work)
		base := []string{"--dangerously-skip-permissions", "-p"}
		t.Log(st.run(t, append(base, "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append([]string{"-c"}, append(base, "errand eta: and now")...)...))
		session := st.one(t, ".claude/projects/*/*.jsonl")
		id, at := lastAnswer(t, session)
		t.Log(st.run(t, append([]string{"--resume", id, "--resume-session-at", at}, append(base, "errand zeta: what does it say")...)...))
		st.save(t, "claude-code/tree.jsonl", st.one(t, ".claude/projects/*/*.jsonl"))
	})
}

// inWork puts the work directory's path in the place of WORK.
func inWork(cues map[string][]step, work string) {
	for _, steps := range cues {
		for _, s := range steps {
			for _, c := range s.calls {
				if p, ok := c.input["file_path"].(string); ok && strings.HasPrefix(p, "WORK/") {
					c.input["file_path"] = filepath.Join(work, strings.TrimPrefix(p, "WORK/"))
				}
			}
		}
	}
}

// lastAnswer finds the last line of the answer that ends the first run of a session of Claude Code.
func lastAnswer(t *testing.T, session []byte) (id, at string) {
	t.Helper()
	for line := range strings.Lines(string(session)) {
		var l struct {
			SessionID, UUID, Type string
			Message               struct {
				StopReason string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == "assistant" && l.Message.StopReason == "end_turn" && at == "" {
			id, at = l.SessionID, l.UUID
		}
	}
	if at == "" {
		t.Fatal("no answer that ends a run")
	}
	return id, at
}

// keep copies HOME to the folder that $KEEP names, to be looked at.
func (st *stage) keep(t *testing.T) {
	t.Helper()
	if dir := os.Getenv("KEEP"); dir != "" {
		if err := os.CopyFS(dir, os.DirFS(st.Home)); err != nil {
			t.Log(err)
		}
	}
}
