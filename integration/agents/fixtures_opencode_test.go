//go:build agents

package agents

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestFixturesOpencode: a session of four runs, the last one interrupted, a failure, one with a sub-agent, whose session is one of
// its own, and another session.
func TestFixturesOpencode(t *testing.T) {
	cues := map[string][]step{
		"errand alpha": {
			{think: "First I look.", say: "I look at both.", calls: []toolCall{
				{"read", map[string]any{"filePath": "missing.txt"}},
				{"bash", map[string]any{"command": "echo found; exit 3", "description": "look"}},
			}},
			{say: "I write it.", calls: []toolCall{{"apply_patch", map[string]any{
				"patchText": "*** Begin Patch\n*** Add File: hello.txt\n+marigold\n*** End Patch",
			}}}},
			{say: "Written: hello.txt."},
		},
		"errand beta": {
			{calls: []toolCall{{"task", map[string]any{
				"description": "count words", "prompt": "errand iota: count the words", "subagent_type": "general",
			}}}},
			{say: "The other one counted."},
		},
		"errand iota": {
			{calls: []toolCall{{"bash", map[string]any{"command": "wc -w hello.txt", "description": "count"}}}},
			{say: "One word."},
		},
		"errand gamma": {{say: "Well, let me", hold: true}},
		"errand delta": {{status: 400}},
		"errand zeta":  {{say: "Another talk."}},
	}
	fixtures(t, "opencode", cues, func(t *testing.T, st *stage) {
		base := []string{"run", "-m", "openai/gpt-5"}
		t.Log(st.run(t, append(base, "errand alpha: write hello.txt")...))
		t.Log(st.run(t, append(base, "-c", "errand beta: have the words counted")...))
		t.Log(st.run(t, append(base, "-c", "errand delta: go on")...))
		st.interrupt(t, "errand gamma", append(base, "-c", "errand gamma: think it over")...)
		t.Log(st.run(t, append(base, "errand zeta: talk")...))
		_ = filepath.WalkDir(st.Home, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				i, _ := d.Info()
				t.Log(path, i.Size())
				if os.Getenv("KEEP") != "" {
					b, _ := os.ReadFile(path)
					rel, _ := filepath.Rel(st.Home, path)
					p := filepath.Join(os.Getenv("KEEP"), rel)
					os.MkdirAll(filepath.Dir(p), 0o755)
					os.WriteFile(p, b, 0o644)
				}
			}
			return nil
		})
	})
}
