//go:build agents

package agents

import (
	"strings"
	"testing"
)

// TestFixturesQwen: a session of three runs, the last one interrupted, a failure, and one with a sub-agent.
func TestFixturesQwen(t *testing.T) {
	cues := map[string][]step{
		"errand alpha": {
			{think: "First I look.", say: "I look at both.", calls: []toolCall{
				{"read_file", map[string]any{"file_path": "/nowhere/missing.txt"}},
				{"run_shell_command", map[string]any{"command": "echo found; exit 3", "description": "look", "is_background": false}},
			}},
			{say: "I write it.", calls: []toolCall{{"write_file", map[string]any{"file_path": "WORK/hello.txt", "content": "marigold\n"}}}},
			{say: "Written: hello.txt."},
		},
		"errand beta": {
			{calls: []toolCall{{"agent", map[string]any{
				"description": "count words", "prompt": "errand iota: count the words", "subagent_type": "general-purpose",
			}}}},
			{say: "The other one counted."},
		},
		"errand iota": {
			{calls: []toolCall{{"run_shell_command", map[string]any{"command": "wc -w hello.txt", "description": "count", "is_background": false}}}},
			{say: "One word."},
		},
		"errand gamma": {{say: "Well, let me", hold: true}},
		"errand delta": {{status: 400}},
	}
	fixtures(t, "qwen-code", cues, func(t *testing.T, st *stage) {
		for _, steps := range cues {
			for _, s := range steps {
				for _, c := range s.calls {
					if p, ok := c.input["file_path"].(string); ok {
						c.input["file_path"] = strings.Replace(p, "WORK", st.Work, 1)
					}
				}
			}
		}
		base := []string{"--auth-type", "openai", "--yolo"}
		t.Log(st.run(t, append(base, "-p", "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append(base, "-c", "-p", "errand beta: have the words counted")...))
		t.Log(st.run(t, append(base, "-c", "-p", "errand delta: go on")...))
		st.interrupt(t, "errand gamma", append(base, "-c", "-p", "errand gamma: think it over")...)
		st.save(t, "qwen-code/session.jsonl", st.one(t, ".qwen/projects/*/chats/*.jsonl"))
		st.save(t, "qwen-code/subagent.jsonl", st.one(t, ".qwen/projects/*/subagents/*/*.jsonl"))
	})
}
