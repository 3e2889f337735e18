package testbench_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestTapeLimit: a run whose tape becomes too long fails, and the tape holds what came before.
func TestTapeLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	b, err := testbench.Open(&testbench.Config{Emit: path, MaxTape: 200_000})
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		b.Clock().Now()
	}
	var limit *testbench.TapeLimitError
	if err := b.Close(); !errors.As(err, &limit) || limit.Limit != 200_000 {
		t.Errorf("closed with %v, want a *TapeLimitError", err)
	}
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for _, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 100 || n >= 5000 {
		t.Errorf("the tape holds %d records", n)
	}
}

// TestOldTapeStays: a run that cannot begin leaves the tape of the one before.
func TestOldTapeStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	if err := os.WriteFile(path, []byte("the tape of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := testbench.Open(&testbench.Config{Emit: path, LLM: testbench.LLM{Fixture: "nowhere.jsonl"}}); err == nil {
		t.Fatal("a run began without its fixture")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "the tape of before" {
		t.Errorf("the old tape is %q, %v", b, err)
	}
}
