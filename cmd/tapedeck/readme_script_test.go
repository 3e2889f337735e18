package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeScript runs the README's transcript of a script: each command of it prints what stands there.
func TestReadmeScript(t *testing.T) {
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "```console\n$ cd docs/examples/testbench\n"
	_, rest, found := strings.Cut(string(b), begin)
	want, _, whole := strings.Cut(rest, "```\n")
	if !found || !whole {
		t.Fatal("README.md has no transcript of a script")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "docs", "examples", "testbench"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	var got strings.Builder
	for line := range strings.Lines(want) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ tapedeck ")
		if !ok {
			continue
		}
		var out, errs bytes.Buffer
		if status := run(context.Background(), strings.Fields(command), streams{strings.NewReader(""), &out, &errs}); status != 0 {
			t.Fatalf("%s ended with %d: %s", command, status, &errs)
		}
		got.WriteString(line + out.String() + errs.String())
	}
	if got.String() != want {
		t.Errorf("the README's commands print:\n%s\nREADME.md has:\n%s", got.String(), want)
	}
}
