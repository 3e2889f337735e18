package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// guideBlock is the first fenced block of the guide to the daemon that begins so.
func guideBlock(t *testing.T, begin string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("docs/daemon.md has no block that begins with %q", begin)
	}
	block, _, _ = strings.Cut(block, "```\n")
	return block
}

// pythonWithWebsockets is a Python that can run the guide's script.
func pythonWithWebsockets(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import websockets").Run() == nil {
			return python
		}
	}
	t.Skip("no Python with websockets: apt-get install python3-websockets")
	return ""
}

// TestGuideScript runs the script of docs/daemon.md, which is docs/examples/agent.py, against serve, and holds what runs show prints of it against the guide.
func TestGuideScript(t *testing.T) {
	python := pythonWithWebsockets(t)
	home := homed(t)
	script := filepath.Join("..", "..", "docs", "examples", "agent.py")
	if b, err := os.ReadFile(script); err != nil || string(b) != guideBlock(t, "```python\n") {
		t.Fatalf("the script in the guide is not %s (%v)", script, err)
	}
	at, _ := serving(t, "--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data"))
	cmd := exec.Command(python, script) // it finds the token by the URL, as homed has them
	cmd.Env = append(os.Environ(), "TAPEDECK_DAEMON="+at.URL)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") != 4 || !strings.Contains(string(out), `"record": "ended"`) {
		t.Fatalf("%v\n%s", err, out)
	}
	status, shown, errs := said("runs", "show", "last", "--daemon", at.URL)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	volatile := regexp.MustCompile(`(?m)^(run|started) +.*$|→ lines  \d+`)
	want := volatile.ReplaceAllString(guideBlock(t, "$ tapedeck runs show last\n"), "$1")
	if got := volatile.ReplaceAllString(shown, "$1"); got != want {
		t.Errorf("the guide has:\n%s\nprinted is:\n%s", want, got)
	}
}

// TestGuidePolicies: docs/daemon.md shows docs/examples/policies.yaml, and that is a file of policies.
func TestGuidePolicies(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "examples", "policies.yaml")
	if b, err := os.ReadFile(path); err != nil || string(b) != guideBlock(t, "```yaml\n") {
		t.Fatalf("the policies in the guide are not %s (%v)", path, err)
	}
	if rules, err := policy.ReadFile(path); err != nil || len(rules) != 2 {
		t.Errorf("%+v, %v", rules, err)
	}
}
