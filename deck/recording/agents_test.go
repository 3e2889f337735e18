package recording

import (
	"path"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

func agentsMasker(t *testing.T, m *Masking) *masks.Masker {
	t.Helper()
	k, err := m.Masker(&Roots{Temp: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestAgentsIn: agents are told from the command line, and a prompt that speaks of one is none.
func TestAgentsIn(t *testing.T) {
	for _, tt := range []struct {
		argv, want []string
	}{
		{[]string{"claude", "-p", "hi"}, []string{"claude-code"}},
		{[]string{"npx", "@anthropic-ai/claude-code", "-p", "hi"}, []string{"claude-code"}},
		{[]string{"node", "/opt/n/.bin/gemini.js"}, []string{"gemini-cli"}},
		{[]string{"/bin/bash", "-c", `cd x && (codex exec "say hi"); copilot -p y`}, []string{"codex", "copilot"}},
		{[]string{"npx", "-y", "@google/gemini-cli"}, []string{"gemini-cli"}},
		{[]string{"npx", "@openai/codex@0.1", "exec"}, []string{"codex"}},
		{[]string{"/n/opencode-linux-x64/bin/opencode", "run", "hi"}, []string{"opencode"}},
		{[]string{"npx", "@anthropic-ai/claude-code@latest"}, []string{"claude-code"}},
		{[]string{"node", "/n/@anthropic-ai/claude-code/cli.js", "-p"}, []string{"claude-code"}},
		{[]string{"env", "A=b", "claude"}, []string{"claude-code"}},
		{[]string{"pi", "-p", "ask claude"}, nil},
		{[]string{"python3", "agent.py", "--model", "claude"}, nil},
		{[]string{"./mine", "-C", "../codex"}, nil},
		{[]string{"sh", "-c", `./mine "ask; claude to do it"`}, nil},
		{[]string{"bash", "run.sh", "claude"}, nil},
		{[]string{"python3", "claude.py"}, nil},
		{nil, nil},
	} {
		if got := AgentsIn(tt.argv); !slices.Equal(got, tt.want) || got == nil {
			t.Errorf("AgentsIn(%q) = %q, want %q", tt.argv, got, tt.want)
		}
	}
}

// TestAgentMasks: what an agent makes up is masked where it runs, and in no other run.
func TestAgentMasks(t *testing.T) {
	const in = `agentId: a0123456789abcdef, shell-snapshots/snapshot-bash-1795914544197-8a4sb8.sh, Chunk ID: 1f3a9c`
	for _, tt := range []struct {
		name string
		m    *Masking
		want string
	}{
		{"claude-code", &Masking{Rules: masks.Rules, Agents: []string{"claude-code"}}, `agentId: <agent-id>, shell-snapshots/snapshot-bash-<shell-snapshot>.sh, Chunk ID: 1f3a9c`},
		{"another", &Masking{Rules: masks.Rules}, in},
		{"one is off", &Masking{Rules: masks.Rules, Agents: []string{"claude-code", "copilot"}, Off: []string{"agent-id"}},
			`agentId: a0123456789abcdef, shell-snapshots/snapshot-bash-<shell-snapshot>.sh, Chunk ID: 1f3a9c`},
		{"the project's own of the same name", &Masking{Rules: masks.Rules, Agents: []string{"claude-code"}, Add: []OwnMask{{Name: "agent-id", Pattern: "agentId"}}},
			`<agent-id>: a0123456789abcdef, shell-snapshots/snapshot-bash-<shell-snapshot>.sh, Chunk ID: 1f3a9c`},
		{"older", &Masking{Rules: 2}, `agentId: a0123456789abcdef, shell-snapshots/snapshot-bash-1795914544197-8a4sb8.sh, Chunk ID: <chunk-id>`},
	} {
		if got := string(agentsMasker(t, tt.m).Mask([]byte(in))); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if _, err := (&Masking{Rules: masks.Rules, Agents: []string{"clod"}}).Masker(&Roots{}); err == nil {
		t.Error("an agent that does not exist is taken")
	}
}

const (
	codexLine = "2026-11-22T06:23:50.627899Z ERROR codex_models_manager::manager: failed to refresh available models: " +
		"stream disconnected before completion: error sending request"
	codex401 = "2026-11-22T06:23:50.627899Z ERROR codex_models_manager::manager: failed to refresh available models: " +
		"unexpected status 401 Unauthorized: no key, url: https://chatgpt.com/backend-api/codex/models"
	codexURL      = " for url (https://chatgpt.com/backend-api/codex/models?client_version=0.169.0)"
	geminiMeasure = "[STARTUP] Cannot measure phase 'cleanup_ops': start mark 'startup:cleanup_ops:start' not found (likely cleared by reset)."
	geminiStart   = "[STARTUP] Phase 'cleanup_ops' was started but never ended. Skipping metrics."
)

// TestLinesGo: what logs say in some runs and not in others goes without a trace, its place too, and is counted.
func TestLinesGo(t *testing.T) {
	m := agentsMasker(t, &Masking{Rules: masks.Rules, Agents: []string{"codex", "gemini-cli"}})
	for _, in := range []string{
		codexLine + "\none\ntwo\n", "one\n" + codexLine + "\ntwo\n", "one\ntwo\n" + codexLine, "one\n" + codexLine + codexURL + "\ntwo\n",
		codexLine + "\n" + codexLine + codexURL + "\none\ntwo\n", codex401 + "\none\ntwo\n", geminiStart + "\none\n" + geminiMeasure + "\ntwo\n", "one\n" + geminiStart + "\ntwo\n",
	} {
		if got := string(m.Mask([]byte(in))); got != "one\ntwo\n" {
			t.Errorf("Mask(%q) = %q", in, got)
		}
	}
	if used := m.Used(); used["codex-models"] != 7 || used["gemini-startup"] != 3 {
		t.Errorf("used: %v", used)
	}
}

// TestLinesStay: what else stands in such a line, or where such a line may not, still counts.
func TestLinesStay(t *testing.T) {
	m := agentsMasker(t, nil) // recordings that are older than the table have these
	const after = "<timestamp> ERROR codex_models_manager::manager: "
	const failed = after + "failed to refresh available models: "
	at := codexLine[:len("2026-11-22T06:23:50.627899Z")]
	for _, tt := range []struct{ in, want string }{
		{at + " ERROR codex_models_manager::manager: failed to refresh available models: no model is left", failed + "no model is left"},
		{at + " ERROR codex_models_manager::manager: failed to load models cache", after + "failed to load models cache"},
		{at + " WARN" + codexLine[len(at)+len(" ERROR"):], "<timestamp> WARN" + codexLine[len(at)+len(" ERROR"):]},
		{"said: " + codexLine, "said: " + failed + "stream disconnected before completion: error sending request"},
		{`"` + codexLine + `"`, `"` + failed + `stream disconnected before completion: error sending request"`},
		{codexLine[len(at):], codexLine[len(at):]},
		{"[STARTUP] Phase 'cleanup_ops' failed.", "[STARTUP] Phase 'cleanup_ops' failed."},
		{"[STARTUP] Cannot measure phase 'x': no clock.", "[STARTUP] Cannot measure phase 'x': no clock."},
		{geminiStart + " Really.", geminiStart + " Really."},
		{"  " + geminiStart, "  " + geminiStart},
	} {
		if got := string(m.Mask([]byte(tt.in))); got != tt.want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
	off := agentsMasker(t, &Masking{Off: []string{"codex-models", "gemini-startup", "timestamp"}})
	for _, in := range []string{codexLine, geminiStart} {
		if got := string(off.Mask([]byte(in))); got != in {
			t.Errorf("switched off: Mask(%q) = %q", in, got)
		}
	}
}

// TestLogsOfAgents: what an agent logs of itself is told by its path; its settings, say, are not of it.
func TestLogsOfAgents(t *testing.T) {
	m := &Manifest{Masking: &Masking{Agents: []string{"claude-code", "codex", "opencode"}, Rules: masks.Rules}}
	now, err := m.ComparingNow("")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{
		"~/.claude/projects/-work/2f1c.jsonl":                                    true,
		"~/.cache/claude-cli-nodejs/-work/mcp-logs-notes/2026-11-30T23-04.jsonl": true,
		"~/.claude/settings.json":                                                false,
		"~/.codex/sessions":                                                      true,
		"~/.codex/state_5.sqlite-wal":                                            true,
		"~/.codex/config.toml":                                                   false,
		"~/.local/share/opencode/log":                                            true,
		"~/.local/share/opencode/auth.json":                                      false,
	} {
		logs := slices.ContainsFunc(now.Files, func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok })
		if logs != want {
			t.Errorf("%s is one of the logs: %v", file, logs)
		}
	}
}
