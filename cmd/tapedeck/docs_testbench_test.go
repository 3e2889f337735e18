package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTestbenchTranscript runs the transcript of a script in docs/testbench.md: each command of it prints what stands there.
func TestTestbenchTranscript(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "testbench.md"))
	if err != nil {
		t.Fatal(err)
	}
	const begin = "```console\n$ cd docs/examples/testbench\n"
	_, rest, found := strings.Cut(string(b), begin)
	want, _, whole := strings.Cut(rest, "```\n")
	if !found || !whole {
		t.Fatal("docs/testbench.md has no transcript of a script")
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
		t.Errorf("its commands print:\n%s\ndocs/testbench.md has:\n%s", got.String(), want)
	}
}
