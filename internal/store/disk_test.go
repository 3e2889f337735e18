package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func openAt(t testing.TB, dir string, o *Options) *Disk {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func TestThin(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, nil)
	id := runtrace.ID{Agent: "a", Run: "r"}
	if existing, err := s.Start(t.Context(), &runtrace.Started{RunID: "r", AgentID: "a", Intent: "try"}); existing || err != nil {
		t.Fatal(existing, err)
	}
	for range 3 {
		if _, err := s.Append(t.Context(), id, make([]runtrace.Turn, 2)); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := s.Trace(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tr.Records {
		t.Logf("%s", r)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir, nil)
	all, err := s.List(t.Context(), "")
	t.Log(all, err)
	b, _ := os.ReadFile(filepath.Join(dir, "runs/a/r.jsonl"))
	t.Logf("%s", b)
}
