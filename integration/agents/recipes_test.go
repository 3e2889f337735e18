//go:build agents

package agents

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// A recipe is how one agent runs without a person and without its own account.
type recipe struct {
	name  string
	bin   string // below node_modules
	host  string // where it finds its model
	key   string // the variable of its API key
	value string // a key of the right shape, that must not be found in the recording
	env   map[string]string
	files map[string]string // below HOME
	args  []string          // before the prompt
	rules string            // the file below HOME whose text the agent puts before the conversation
	node  bool              // it needs the Node of node_modules, which is newer than the one that installed it
}

const openAIKey = "sk-proj-not-a-key-0123456789-abcdefghij"

var recipes = []recipe{
	{
		name: "gemini-cli", bin: ".bin/gemini", host: "generativelanguage.googleapis.com",
		key: "GEMINI_API_KEY", value: "AIzaSy-not-a-key-0123456789-abcdefghij",
		env: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},` +
			`"privacy":{"usageStatisticsEnabled":false}}`},
		args:  []string{"--model", "gemini-2.5-flash", "--yolo", "-p"},
		rules: ".gemini/GEMINI.md",
	},
	{
		name: "pi", bin: ".bin/pi", host: "api.anthropic.com",
		key: "ANTHROPIC_API_KEY", value: "sk-ant-api03-not-a-key-0123456789-abcdefghij",
		env:   map[string]string{"PI_OFFLINE": "1"},
		args:  []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p"},
		rules: ".pi/agent/AGENTS.md",
	},
	{
		name: "codex", bin: ".bin/codex", host: "api.openai.com", key: "CODEX_API_KEY", value: openAIKey,
		args:  []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5-codex"},
		rules: ".codex/AGENTS.md",
	},
	{
		name: "opencode", bin: opencodeBin(), host: "api.openai.com", key: "OPENAI_API_KEY", value: openAIKey,
		env:   map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
		args:  []string{"run", "-m", "openai/gpt-5"},
		rules: ".config/opencode/AGENTS.md",
	},
	{
		name: "qwen-code", bin: ".bin/qwen", node: true, host: "api.openai.com", key: "OPENAI_API_KEY", value: openAIKey,
		env:   map[string]string{"OPENAI_MODEL": "gpt-4o", "OPENAI_BASE_URL": "https://api.openai.com/v1"},
		args:  []string{"--auth-type", "openai", "--yolo", "-p"},
		rules: ".qwen/QWEN.md",
	},
}

// opencodeBin is the program in its package for this machine: that of opencode-ai itself is put there by an install
// script. The baseline build runs on any amd64.
func opencodeBin() string {
	if runtime.GOARCH == "amd64" {
		return "opencode-linux-x64-baseline/bin/opencode"
	}
	return "opencode-linux-" + runtime.GOARCH + "/bin/opencode"
}

// program is what the agent's command line begins with; the test is skipped where that is not installed.
func (r recipe) program(t *testing.T, modules string) []string {
	t.Helper()
	words := []string{r.bin}
	if r.node {
		words = []string{".bin/node", r.bin}
	}
	for i, word := range words {
		path, err := filepath.Abs(filepath.Join(modules, word))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the agent is not installed: %v", err)
		}
		words[i] = path
	}
	return words
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
	b.WriteFile(filepath.Join(b.Home, r.rules), rules)
	// The recorder dials through a proxy that is not there, but for the host of the model: what the agent asks of others is
	// answered by nobody, wherever this runs. The agent does not see these.
	b.Setenv("HTTPS_PROXY", nowhere)
	b.Setenv("HTTP_PROXY", nowhere)
}

// nowhere is a port of this machine that nothing listens on.
const nowhere = "http://127.0.0.1:9"

// command is the agent's command line for a prompt.
func (r recipe) command(program []string, prompt string) []string {
	return append(append(append([]string{}, program...), r.args...), prompt)
}
