//go:build helpers

package helpers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

func TestMain(m *testing.M) { run.Main(m) }

// A runner is one that collects recordings.
type runner struct {
	name  string
	files map[string]string
	argv  func(t *testing.T) []string
	ends  string // what its last lines say of two that hold, one of which is a script, and one that does not
	skips string // and where all but the script are skipped
}

const nodeTest = `import { recordings } from %q;
recordings(test, "recs", { args: ["--tree", "now"] });
`

var runners = []runner{
	{
		name:  "pytest",
		files: map[string]string{"pytest.ini": "[pytest]\ntapedeck_paths = recs\ntapedeck_args = --tree now\n"},
		argv: func(t *testing.T) []string {
			return []string{run.Tool(t, "python3"), "-m", "pytest", "-p", "pytest_tapedeck", "-p", "no:cacheprovider"}
		},
		ends: "1 failed, 2 passed", skips: "1 passed, 2 skipped",
	},
	{
		name:  "node:test",
		files: map[string]string{"recordings.test.mjs": "import { test } from 'node:test';\n" + nodeTest},
		argv:  func(t *testing.T) []string { return []string{run.Tool(t, "node"), "--test", "--test-reporter=tap"} },
		ends:  "# pass 2\n# fail 1", skips: "# skipped 2",
	},
	{
		name:  "vitest",
		files: map[string]string{"recordings.test.mjs": "import { test } from 'vitest';\n" + nodeTest},
		argv: func(t *testing.T) []string {
			return []string{run.Tool(t, "node"), filepath.Join(modules(t), "vitest/vitest.mjs"), "run", "--no-cache"}
		},
		ends: "1 failed | 2 passed (3)", skips: "1 passed | 2 skipped (3)",
	},
}

func modules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TAPEDECK_HELPERS")
	if dir == "" {
		t.Skip("TAPEDECK_HELPERS names no node_modules with vitest in it")
	}
	return dir
}

// helper is the absolute path of a file of the folder helpers.
func helper(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../helpers", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunners(t *testing.T) {
	for _, r := range runners {
		t.Run(r.name, func(t *testing.T) {
			run.Once(t, func(t *testing.T, b *run.Box) { r.try(t, b) })
		})
	}
}

func (r *runner) try(t *testing.T, b *run.Box) {
	argv := r.argv(t)
	b.Setenv("PYTHONPATH", helper(t, "pytest"))
	b.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	b.Setenv("NO_COLOR", "1")
	b.WriteFile(filepath.Join(b.Work, "node_modules/@tapedeck-dev/.keep"), "")
	for name, to := range map[string]string{"@tapedeck-dev/test": helper(t, "node"), "vitest": filepath.Join(os.Getenv("TAPEDECK_HELPERS"), "vitest")} {
		if err := os.Symlink(to, filepath.Join(b.Work, "node_modules", name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range r.files {
		b.WriteFile(filepath.Join(b.Work, name), strings.ReplaceAll(text, "%q", `"@tapedeck-dev/test"`))
	}
	b.WriteFile(filepath.Join(b.Work, "recs/greet_test.star"), "def test_greet():\n    pass\n")
	b.WriteFile(filepath.Join(b.Work, "in.txt"), "one\n")
	for _, argv := range [][]string{
		{"record", "-o", "recs/good.rec", "--", "true"}, {"record", "-o", "bad.rec", "--", "sh", "-c", "cat in.txt >out.txt"},
		{"pack", "bad.rec", "recs/bad.tar.zst"},
	} {
		if res := b.Tapedeck(argv...); res.Status != 0 {
			t.Fatal(res)
		}
	}
	b.WriteFile(filepath.Join(b.Work, "in.txt"), "two\n")

	res := b.Run(argv[0], argv[1:]...)
	wants(t, res, false, "tapedeck is not there", "go install", "TAPEDECK")
	b.Setenv("TAPEDECK", b.Binary())
	res = b.Run(argv[0], argv[1:]...)
	wants(t, res, false, r.ends, "bad.tar.zst", "good.rec", "greet_test.star", "first divergence: another content was written (out.txt)")
	b.Setenv("TAPEDECK", jailless(t, b))
	res = b.Run(argv[0], argv[1:]...)
	wants(t, res, true, r.skips)
}

// jailless is a tapedeck on a machine without a jail: what it would print of recordings there.
func jailless(t *testing.T, b *run.Box) string {
	path := filepath.Join(b.Home, "tapedeck")
	b.WriteFile(path, `#!/bin/sh
for path; do :; done
case "$*" in
*--list*|*_test.star) exec `+b.Binary()+` "$@" ;;
esac
echo '{"version":1,"path":"'"$path"'","status":"no-jail","why":"jail unavailable"}'
echo '{"version":1,"summary":{"no-jail":1},"exit":1}'
exit 1
`)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func wants(t *testing.T, res run.Result, holds bool, texts ...string) {
	t.Helper()
	all := res.Stdout + res.Stderr
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%q is not said", text)
		}
	}
	if holds != (res.Status == 0) || t.Failed() {
		t.Fatal(res)
	}
}
