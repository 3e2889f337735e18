//go:build agents

package agents

import (
	"slices"
	"testing"
)

// TestFixturesGemini: a session of several runs: calls beside each other, one that fails, a sub-agent, a failure of the model's, an
// abort.
func TestFixturesGemini(t *testing.T) {
	cues := map[string][]step{
		"errand alpha": {
			{think: "**Looking** First I look.", say: "I look at both.", calls: []toolCall{
				{"read_file", map[string]any{"file_path": "missing.txt"}},
				{"run_shell_command", map[string]any{"command": "echo found; exit 3", "description": "look"}},
			}},
			{say: "I write it.", calls: []toolCall{{"write_file", map[string]any{"file_path": "hello.txt", "content": "marigold\n"}}}},
			{say: "Written: hello.txt."},
		},
		"errand beta": {
			{calls: []toolCall{{"invoke_agent", map[string]any{"agent_name": "generalist", "prompt": "errand iota: count the words"}}}},
			{say: "The other one counted."},
		},
		"errand iota": {
			{calls: []toolCall{{"run_shell_command", map[string]any{"command": "wc -w hello.txt", "description": "count"}}}},
			{calls: []toolCall{{"complete_task", map[string]any{"result": "One word.", "response": "One word."}}}},
		},
		"errand gamma": {{say: "Well, let me", hold: true}},
		"errand delta": {{status: 400}},
		"errand eta":   {{say: "After all that."}},
	}
	fixtures(t, "gemini-cli", cues, func(t *testing.T, st *stage) {
		base := []string{"--model", "gemini-2.5-flash", "--yolo"}
		again := slices.Concat(base, []string{"--resume", "latest"})
		t.Log(st.run(t, append(base, "-p", "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append(again, "-p", "errand beta: have the words counted")...))
		t.Log(st.run(t, append(again, "-p", "errand delta: go on")...))
		st.interrupt(t, "errand gamma", append(again, "-p", "errand gamma: think it over")...)
		t.Log(st.run(t, append(again, "-p", "errand eta: and now")...))
		st.keep(t)
		st.save(t, "gemini-cli/session.jsonl", st.holding(t, ".gemini/tmp/*/chats/session-*.jsonl", "errand eta"))
		st.save(t, "gemini-cli/agent.jsonl", st.one(t, ".gemini/tmp/*/chats/*/*.jsonl"))
	})
}
