package decktest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/decktest"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
)

// TestGiven tries what TestRun has recorded: a test that fails is looked at from outside.
func TestGiven(t *testing.T) {
	dir := os.Getenv("DECKTEST_DIR")
	if dir == "" {
		t.Skip("TestRun runs it")
	}
	decktest.Run(t, dir, &decktest.Options{Options: gate.Options{TreeNow: true}})
}

func TestRun(t *testing.T) {
	if err := deck.Available(); err != nil {
		t.Skip(err)
	}
	tree := t.TempDir()
	write(t, filepath.Join(tree, "in.txt"), "one\n")
	write(t, filepath.Join(tree, "recs", "a_test.star"), "def test_a():\n    pass\n\ndef test_b():\n    pass\n")
	for name, command := range map[string]string{"good": "true", "bad": "cat in.txt >out.txt"} {
		if _, err := deck.Record(context.Background(), &deck.RecordOptions{
			Argv: []string{"sh", "-c", command}, Dir: tree, Tree: tree, Env: os.Environ(), Output: filepath.Join(tree, "recs", name+".rec"),
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(tree, "in.txt"), "two\n")
	cmd := exec.Command(os.Args[0], "-test.run=^TestGiven$", "-test.v")
	cmd.Env = append(os.Environ(), "DECKTEST_DIR="+filepath.Join(tree, "recs"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it holds")
	}
	for _, want := range []string{
		"--- PASS: TestGiven/good.rec", "--- FAIL: TestGiven/bad.rec", "--- PASS: TestGiven/a_test.star/test_b",
		"first divergence: another content was written (out.txt)", `+ "two"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not said", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
