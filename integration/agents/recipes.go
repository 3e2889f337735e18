package agents

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
)

// A Recipe is how one agent runs without a person and without its own account.
type Recipe struct {
	Name  string
	Bin   string // below node_modules
	Host  string // where it finds its model
	Key   string // the variable of its API key
	Value string // a key of the right shape, that must not be found in the recording
	Env   map[string]string
	Files map[string]string // below HOME
	Args  []string          // before the prompt
	Rules string            // the file below HOME whose text the agent puts before the conversation
	Node  bool              // it needs the Node of node_modules, which is newer than the one that installed it
	// Socket says that it speaks to its model over a WebSocket, and by HTTP where that is answered 426.
	Socket bool
}

const openAIKey = "sk-proj-not-a-key-0123456789-abcdefghij"

// Recipes are those of the agents that the lock file of npm/ names.
var Recipes = []Recipe{
	{
		Name: "gemini-cli", Bin: ".bin/gemini", Host: "generativelanguage.googleapis.com",
		Key: "GEMINI_API_KEY", Value: "AIzaSy-not-a-key-0123456789-abcdefghij",
		Env: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"},
		Files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},` +
			`"privacy":{"usageStatisticsEnabled":false}}`},
		Args:  []string{"--model", "gemini-2.5-flash", "--yolo", "-p"},
		Rules: ".gemini/GEMINI.md",
	},
	{
		Name: "pi", Bin: ".bin/pi", Host: "api.anthropic.com",
		Key: "ANTHROPIC_API_KEY", Value: "sk-ant-api03-not-a-key-0123456789-abcdefghij",
		Env:   map[string]string{"PI_OFFLINE": "1"},
		Args:  []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p"},
		Rules: ".pi/agent/AGENTS.md",
	},
	{
		Name: "codex", Bin: ".bin/codex", Host: "api.openai.com", Key: "CODEX_API_KEY", Value: openAIKey, Socket: true,
		Args:  []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5-codex"},
		Rules: ".codex/AGENTS.md",
	},
	{
		Name: "opencode", Bin: opencodeBin(), Host: "api.openai.com", Key: "OPENAI_API_KEY", Value: openAIKey,
		Env:   map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
		Args:  []string{"run", "-m", "openai/gpt-5"},
		Rules: ".config/opencode/AGENTS.md",
	},
	{
		Name: "qwen-code", Bin: ".bin/qwen", Node: true, Host: "api.openai.com", Key: "OPENAI_API_KEY", Value: openAIKey,
		Env: map[string]string{
			"OPENAI_MODEL": "gpt-4o", "OPENAI_BASE_URL": "https://api.openai.com/v1",
			"QWEN_CODE_DISABLE_CRON": "1", // else whether it still removes a lock when it ends is chance
		},
		// Else it starts systemd-inhibit and kills it, which may have ended by itself before.
		Files: map[string]string{".qwen/settings.json": `{"general":{"preventSystemSleep":false}}`},
		Args:  []string{"--auth-type", "openai", "--yolo", "-p"},
		Rules: ".qwen/QWEN.md",
	},
}

// ClaudeCode is how Claude Code runs, for the fixtures of sessionlog/foreign. It is none of Recipes: of what it sends, its first
// system block and metadata.user_id are new in each run.
var ClaudeCode = Recipe{
	Name: "claude-code", Bin: "@anthropic-ai/claude-code-linux-" + nodeArch() + "/claude", Host: "api.anthropic.com",
	Key: "ANTHROPIC_API_KEY", Value: "sk-ant-api03-not-a-key-0123456789-abcdefghij",
	Env: map[string]string{
		"IS_SANDBOX": "1", // else it refuses root what it is told to allow
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
	},
	Args:  []string{"--dangerously-skip-permissions", "-p"},
	Rules: ".claude/CLAUDE.md",
}

// A BusyRow is an agent in a scene: one that it plays beside its model, see busyScenes.
type BusyRow struct {
	Agent, Scene string
}

// Name is that of a row's test.
func (r BusyRow) Name() string { return r.Agent + "/" + r.Scene }

// BusyRows are agents that do more than one thing at a time: they report what they do beside their calls, run tools side by side, have
// helpers and commands in the background, try again what failed, talk with a tool server. Their recordings replay green.
var BusyRows = []BusyRow{
	{"claude-code-as-installed", "tools"}, {"claude-code-as-installed", "helpers"},
	{"claude-code-quiet", "tools"}, {"claude-code-quiet", "helpers"}, {"claude-code-quiet", "commit"},
	{"claude-code-quiet", "retries"}, {"claude-code-quiet", "server"},
	{"copilot-as-installed", "tools"}, {"copilot-quiet", "tools"}, {"copilot-quiet", "commit"},
	{"copilot-quiet", "retries"}, {"copilot-quiet", "server"},
	{"openai-agents", "tools"}, {"openai-agents", "retries"},
}

// Busy are the agents of BusyRows, by name: Claude Code and the Copilot CLI as they are installed, and with their background traffic off;
// a program of the OpenAI Agents SDK with its tracing on.
var Busy = map[string]Recipe{
	"claude-code-as-installed": claude(map[string]string{"IS_SANDBOX": "1"}),
	"claude-code-quiet":        claude(ClaudeCode.Env),
	"copilot-as-installed":     copilot(nil),
	"copilot-quiet":            copilot(map[string]string{"COPILOT_OFFLINE": "true"}),
	"openai-agents": {
		Bin: "@openai/agents/package.json", Host: "api.openai.com", Key: "OPENAI_API_KEY", Value: openAIKey, Node: true,
		Rules: ".openai-agents/rules.md",
	},
}

// claude is Claude Code with these variables.
func claude(env map[string]string) Recipe {
	r := ClaudeCode
	r.Env, r.Args = env, append([]string{"--model", "claude-sonnet-4-5"}, r.Args...)
	return r
}

// copilot is the Copilot CLI with these variables.
func copilot(env map[string]string) Recipe {
	r := Recipe{
		Bin: ".bin/copilot", Host: "api.openai.com", Key: "COPILOT_PROVIDER_API_KEY", Value: openAIKey,
		Env:   map[string]string{"COPILOT_PROVIDER_BASE_URL": "https://api.openai.com/v1", "COPILOT_MODEL": "gpt-5"},
		Args:  []string{"--allow-all-tools", "-p"},
		Rules: ".copilot/copilot-instructions.md",
	}
	maps.Copy(r.Env, env)
	return r
}

// Further are agents that TestRounds alone runs.
var Further = []Recipe{
	{
		Name: "cline", Bin: "@cline/cli-linux-" + nodeArch() + "/bin/cline", Host: ClaudeCode.Host, Key: ClaudeCode.Key, Value: ClaudeCode.Value,
		Env: map[string]string{"CLINE_SESSION_BACKEND_MODE": "local"}, // else a daemon stays in the background, and is cut off
		Files: map[string]string{ // what is sent there is told by how often a shell asks for the machine's id
			".cline/data/settings/global-settings.json": `{"telemetryOptOut":true,"autoUpdateEnabled":false}`,
		},
		Args:  []string{"-P", "anthropic", "-m", "claude-sonnet-4-5"},
		Rules: ".cline/rules/rules.md",
	},
}

// nodeArch is this machine's architecture as npm names it.
func nodeArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

// opencodeBin is the program in its package for this machine: that of opencode-ai itself is put there by an install
// script. The baseline build runs on any amd64.
func opencodeBin() string {
	if runtime.GOARCH == "amd64" {
		return "opencode-linux-x64-baseline/bin/opencode"
	}
	return "opencode-linux-" + runtime.GOARCH + "/bin/opencode"
}

// Program is what the agent's command line begins with, below a node_modules folder. The error says what is not installed.
func (r *Recipe) Program(modules string) ([]string, error) {
	words := []string{r.Bin}
	if r.Node {
		words = []string{".bin/node", r.Bin}
	}
	for i, word := range words {
		path, err := filepath.Abs(filepath.Join(modules, word))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return nil, fmt.Errorf("the agent is not installed: %w", err)
		}
		words[i] = path
	}
	return words, nil
}

// Command is the agent's command line for a prompt.
func (r *Recipe) Command(program []string, prompt string) []string {
	return append(append(append([]string{}, program...), r.Args...), prompt)
}

// Nowhere is a port of this machine that nothing listens on. A recorder that dials through it as its proxy has nobody answer
// what an agent asks of other hosts than its model's, wherever this runs. The agent does not see it.
const Nowhere = "http://127.0.0.1:9"
