package runtrace

import (
	"path/filepath"
	"testing"
)

// A name comes back from its file, on systems that do not take it as it is, too.
func TestNamesOfFiles(t *testing.T) {
	for system, want := range map[string]string{"linux": "name:a.b-1", "windows": "name%3Aa.b-1"} {
		if got := fileName("name:a.b-1", system); got != want || nameOf(got, system) != "name:a.b-1" {
			t.Errorf("on %s it is %s, and back %s", system, got, nameOf(got, system))
		}
	}
	id := ID{Agent: "name:a", Run: "r:1"}
	dir, file := filepath.Split(id.File())
	if got, ok := FileID(filepath.Clean(dir), file); !ok || got != id {
		t.Errorf("%s is %v, %t", id.File(), got, ok)
	}
	for _, file := range []string{"r", "r.json", ".jsonl", "r.jsonl.aside", "a b.jsonl"} {
		if id, ok := FileID("a", file); ok {
			t.Errorf("%s is %v", file, id)
		}
	}
}
