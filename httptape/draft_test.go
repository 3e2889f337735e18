package httptape

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cas/castest"
)

func TestDraftIsAStore(t *testing.T) {
	castest.Conformance(t, func(t *testing.T) cas.Store { return openDraft(t) })
}

func openDraft(t *testing.T) *draft {
	t.Helper()
	s, err := newDraft()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// TestDraftHasNoName: what is in a draft stands under no name, so that nothing of it stays behind a process that is killed.
func TestDraftHasNoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	s := openDraft(t)
	if _, err := s.Put(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if f, err := os.Open(dir + "/" + e.Name()); err == nil { // on Windows it has a name, and nobody can open it
			f.Close()
			t.Errorf("%s is there to read", e.Name())
		}
	}
}

func TestDamagedDraft(t *testing.T) {
	s := openDraft(t)
	d, err := s.Put([]byte("as it was"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.f.WriteAt([]byte("X"), 0); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *cas.CorruptError
	if _, err := io.ReadAll(r); !errors.As(err, &corrupt) {
		t.Errorf("read with %v", err)
	}
}
