//go:build agents

package agents

import (
	"slices"
	"testing"
)

// TestFixturesCodex: a session of several runs: calls beside each other, one that fails, a sub-agent, a failure of the model's, an
// abort.
func TestFixturesCodex(t *testing.T) {
	run := func(command string) toolCall { return toolCall{"exec_command", map[string]any{"cmd": command}} }
	cues := map[string][]step{
		"errand alpha": {
			{think: "First I look.", say: "I look at both.", calls: []toolCall{run("ls missing.txt"), run("echo found")}},
			{say: "I write it.", calls: []toolCall{run("echo marigold > hello.txt")}},
			{say: "Written: hello.txt."},
		},
		"errand beta": {
			{calls: []toolCall{{"multi_agent_v1.spawn_agent", map[string]any{"message": "errand iota: count the words"}}}},
			{calls: []toolCall{run("sleep 2")}},
			{say: "The other one counted."},
		},
		"errand iota":  {{calls: []toolCall{run("wc -w hello.txt")}}, {say: "One word."}},
		"errand gamma": {{say: "Well, let me", hold: true}},
		"errand delta": {{status: 400}},
		"errand eta":   {{calls: []toolCall{{"nothing_like_it", map[string]any{"a": 1}}}}, {say: "After all that."}},
	}
	fixtures(t, "codex", cues, func(t *testing.T, st *stage) {
		base := []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5-codex"}
		again := slices.Concat(base, []string{"resume", "--last"})
		t.Log(st.run(t, append(base, "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append(again, "errand delta: go on")...))
		st.interrupt(t, "errand gamma", append(again, "errand gamma: think it over")...)
		t.Log(st.run(t, append(again, "errand eta: and now")...))
		st.save(t, "codex/session.jsonl", st.one(t, ".codex/sessions/*/*/*/rollout-*.jsonl"))
		t.Log(st.run(t, append(base, "errand beta: have the words counted")...))
		st.keep(t)
		st.save(t, "codex/parent.jsonl", st.holding(t, ".codex/sessions/*/*/*/rollout-*.jsonl", "spawn_agent"))
		st.save(t, "codex/agent.jsonl", st.one(t, ".codex/sessions/*/*/*/rollout-*.jsonl"))
	})
}
