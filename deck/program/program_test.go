package program

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestProgramDigest asks again for a program that was written anew in its place, with the same size and the same time.
func TestProgramDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	write := func(text string) string {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		return DigestOf(path).String()
	}
	first := write("#!/bin/sh\necho one\n")
	if again := DigestOf(path).String(); again != first {
		t.Errorf("%s, then %s, of one file", first, again)
	}
	if other := write("#!/bin/sh\necho two\n"); other == first {
		t.Error("the digest of what the file held before")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if d := DigestOf(path); d.String() == first {
		t.Error("the digest of a file that is gone")
	}
}
