//go:build agents

package agents

import (
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// A recipe is how one agent runs without a person and without its own account.
type recipe struct {
	name  string
	bin   string // below node_modules/.bin
	host  string // where it finds its model
	key   string // the variable of its API key
	value string // a key of the right shape, that must not be found in the recording
	env   map[string]string
	files map[string]string // below HOME
	args  []string          // before the prompt
}

var recipes = []recipe{
	{
		name: "gemini-cli", bin: "gemini", host: "generativelanguage.googleapis.com",
		key: "GEMINI_API_KEY", value: "AIzaSy-not-a-key-0123456789-abcdefghij",
		env: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"},
		// Without session retention one task less races for gemini's own lock at its start. Whoever loses decides whether
		// stderr has a "[STARTUP] Phase 'cleanup_ops' was started but never ended", and stderr gates the verdict.
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},` +
			`"privacy":{"usageStatisticsEnabled":false},"general":{"sessionRetention":{"enabled":false}}}`},
		args: []string{"--model", "gemini-2.5-flash", "--yolo", "-p"},
	},
	{
		name: "pi", bin: "pi", host: "api.anthropic.com",
		key: "ANTHROPIC_API_KEY", value: "sk-ant-api03-not-a-key-0123456789-abcdefghij",
		env:  map[string]string{"PI_OFFLINE": "1"},
		args: []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p"},
	},
}

// prepare puts into a box what the agent needs.
func (r recipe) prepare(b *run.Box) {
	b.Setenv(r.key, r.value)
	for name, value := range r.env {
		b.Setenv(name, value)
	}
	for path, content := range r.files {
		b.WriteFile(filepath.Join(b.Home, path), content)
	}
}

// command is the agent's command line for a prompt.
func (r recipe) command(bin, prompt string) []string {
	return append(append([]string{bin}, r.args...), prompt)
}
