//go:build linux

package sdk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// installed names the folder that holds the npm packages of node/package-lock.json.
const installed = "TAPEDECK_SDK_NODE"

// interpreter returns a program's path in the system's folders, and skips the test where it is missing.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(systemPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Skipf("no %s in %s", name, systemPath)
	return ""
}

// scripts copies a folder's scripts to where everyone may read them.
func scripts(t *testing.T, folder string) string {
	t.Helper()
	dir, err := os.MkdirTemp(built, folder)
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.CopyFS(dir, os.DirFS(folder)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNode(t *testing.T) {
	modules := os.Getenv(installed)
	if modules == "" {
		t.Skipf("%s names no folder with the npm packages; bash integration/sdk/run.sh installs them and runs this test", installed)
	}
	modules, err := filepath.Abs(filepath.Join(modules, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("%s: want a folder with node_modules in it: %v", installed, err)
	}
	node := interpreter(t, "node")
	dir := scripts(t, "node")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	list := []sdk{
		{
			name: "anthropic", hosts: []string{"api.anthropic.com"}, env: map[string]string{"ANTHROPIC_API_KEY": key},
			scenes: []string{"conversation", "side-by-side", "stream", "thinking", "count", "upload", "retry", "batch"},
		},
		{
			name: "openai", hosts: []string{"api.openai.com"}, env: map[string]string{"OPENAI_API_KEY": key},
			scenes: []string{
				"conversation", "side-by-side", "stream", "responses", "responses-stream", "count", "embed", "upload", "retry", "batch",
			},
		},
		{
			name: "genai", hosts: []string{"generativelanguage.googleapis.com"}, env: map[string]string{"GEMINI_API_KEY": key},
			// Not upload: the SDK tries a refused one again and again.
			scenes: []string{"conversation", "side-by-side", "stream", "thinking", "count", "embed", "retry", "batch"},
		},
		{
			name: "ollama", hosts: []string{"127.0.0.1:11434"}, open: true,
			scenes: []string{"conversation", "side-by-side", "stream", "thinking", "embed", "batch"},
		},
	}
	for _, s := range list {
		s.argv = []string{node, filepath.Join(dir, s.name+".mjs")}
		t.Run(s.name, s.check)
	}
}

func TestPython(t *testing.T) {
	python := interpreter(t, "python3")
	dir := scripts(t, "python")
	list := []sdk{
		{
			name: "anthropic", hosts: []string{"api.anthropic.com"}, env: map[string]string{"ANTHROPIC_API_KEY": key},
			scenes: []string{"conversation", "stream", "count", "retry", "batch"},
		},
		{
			name: "openai", hosts: []string{"api.openai.com"}, env: map[string]string{"OPENAI_API_KEY": key},
			scenes: []string{"conversation", "stream", "responses", "embed", "upload", "retry", "batch"},
		},
	}
	for _, s := range list {
		s.argv = []string{python, filepath.Join(dir, s.name+"_client.py")}
		t.Run(s.name, func(t *testing.T) {
			if out, err := exec.Command(python, "-c", "import "+s.name).CombinedOutput(); err != nil {
				t.Skipf("the package %s is not installed for %s: %s", s.name, python, out)
			}
			s.check(t)
		})
	}
}
