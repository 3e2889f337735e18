//go:build tty && linux

package tty

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/integration/agents"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// startsWithin is how long an agent's first screen may take on a busy machine.
const startsWithin = 2 * time.Minute

// agent starts the full screen of an agent, with a scripted endpoint as its model, or skips the test.
func agent(t *testing.T, name string, env func(url string) []string, files map[string]func(url string) string, args ...string) *played {
	t.Helper()
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	for _, r := range agents.Recipes {
		if r.Name != name {
			continue
		}
		program, err := r.Program(modules)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Key: r.Value}))
		t.Cleanup(server.Close)
		home, work := t.TempDir(), t.TempDir()
		for path, content := range files {
			path = filepath.Join(home, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, path, content(server.URL))
		}
		vars := append([]string{"HOME=" + home, r.Key + "=" + r.Value}, env(server.URL)...)
		for k, v := range r.Env {
			vars = append(vars, k+"="+v)
		}
		return play(t, &terminal.SessionOptions{
			Dir: work, Env: vars, Size: terminal.Size{Rows: 40, Cols: 120}, Patience: startsWithin, Grace: 10 * time.Second,
		}, append(program, args...)...)
	}
	t.Fatalf("no recipe of %s", name)
	return nil
}

// TestSessionGemini has a person talk to gemini-cli on its full screen, and leave.
func TestSessionGemini(t *testing.T) {
	settings := func(string) string {
		return `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},` +
			`"general":{"disableAutoUpdate":true,"enableAutoUpdate":false},"ide":{"hasSeenNudge":true}}`
	}
	p := agent(t, "gemini-cli", func(url string) []string { return []string{"GOOGLE_GEMINI_BASE_URL=" + url} },
		map[string]func(string) string{".gemini/settings.json": settings}, "--model", "gemini-2.5-flash", "--yolo")
	p.until(terminal.Text("Type your message"))
	p.rests()
	p.types("write hello.txt with the text marigold")
	p.until(terminal.Text("the text marigold"))
	p.keys("enter")
	p.until(terminal.When("the agent's file", func(*terminal.Screen) bool {
		return file(filepath.Join(p.work, "hello.txt")) == "marigold\n"
	}))
	p.rests()
	p.types("/quit")
	p.until(terminal.Text("Exit the cli")) // what it could mean is listed
	p.rests()
	p.keys("enter")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := p.Wait(ctx); err != nil {
		p.keys("enter") // the first took a line of the list
	}
	p.ends(0)
}

// TestSessionCodex does the same on codex's.
func TestSessionCodex(t *testing.T) {
	config := func(url string) string {
		return "check_for_update_on_startup = false\nmodel_provider = \"scripted\"\nmodel = \"gpt-5-codex\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"" + url +
			"/v1\"\nenv_key = \"CODEX_API_KEY\"\nwire_api = \"responses\"\n"
	}
	p := agent(t, "codex", func(string) []string { return nil }, map[string]func(string) string{".codex/config.toml": config},
		"--dangerously-bypass-approvals-and-sandbox")
	came, _, err := p.WaitFor(t.Context(), terminal.Text("Do you trust"), terminal.Text("context left"), terminal.Text("/model"))
	if err != nil {
		t.Fatal(err)
	}
	if came == 0 {
		p.keys("enter")
	}
	p.until(terminal.Text("gpt-5-codex"))
	p.types("write hello.txt with the text marigold")
	p.until(terminal.Text("the text marigold"))
	p.keys("enter")
	p.until(terminal.When("the agent's file", func(*terminal.Screen) bool {
		return file(filepath.Join(p.work, "hello.txt")) == "marigold\n"
	}))
	p.types("/quit")
	p.until(terminal.Text("/quit"))
	p.keys("enter")
	p.ends(0)
}
