package overlay_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// benchDir holds one file of 4 KiB, three directories down.
func benchDir(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	must(b, os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o755))
	must(b, os.WriteFile(filepath.Join(dir, "a", "b", "c", "file"), bytes.Repeat([]byte("line\n"), 800), 0o644))
	return dir
}

const benchFile = "a/b/c/file"

// BenchmarkReadBelow is of a file of the directory: through os.Root, through a tree, with a tape and from one.
func BenchmarkReadBelow(b *testing.B) {
	dir := benchDir(b)
	b.Run("root", func(b *testing.B) {
		root, err := os.OpenRoot(dir)
		must(b, err)
		defer root.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := root.ReadFile(benchFile); err != nil {
				b.Fatal(err)
			}
		}
	})
	each := func(f *overlay.FS) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.ReadFile(benchFile); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("tree", each(newFS(b, &overlay.Options{Dir: dir})))
	recorded := newFS(b, &overlay.Options{Dir: dir})
	discard(b, recorded)
	b.Run("recorded", each(recorded))
	f := newFS(b, &overlay.Options{Dir: dir})
	r := record(b, f)
	_, err := f.ReadFile(benchFile)
	must(b, err)
	b.Run("taped", each(newFS(b, &overlay.Options{Tape: overlay.NewTaped(r.records(), r.store, nil)})))
}

// discard has f write to a tape that nobody keeps.
func discard(b *testing.B, f *overlay.FS) {
	b.Helper()
	w, err := tape.NewWriter(io.Discard, &tape.Header{Producer: "test"})
	must(b, err)
	f.Record(tape.NewRecorder(w, nil))
}

// BenchmarkMemory is of a file that the program wrote: in a map under a lock, and in a tree.
func BenchmarkMemory(b *testing.B) {
	text := bytes.Repeat([]byte("line\n"), 800)
	b.Run("map", func(b *testing.B) {
		var mu sync.Mutex
		all := make(map[string][]byte)
		b.ReportAllocs()
		for b.Loop() {
			mu.Lock()
			all[benchFile] = bytes.Clone(text)
			mu.Unlock()
			mu.Lock()
			_ = bytes.Clone(all[benchFile])
			mu.Unlock()
		}
	})
	each := func(f *overlay.FS) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.WriteFile(benchFile, text, 0o644); err != nil {
					b.Fatal(err)
				}
				if _, err := f.ReadFile(benchFile); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("tree", each(newFS(b, nil)))
	recorded := newFS(b, nil)
	discard(b, recorded)
	b.Run("recorded", each(recorded))
}

// TestNoRecorderCostsNothing: what a call allocates without a tape is the way to the file, and what it returns or keeps.
func TestNoRecorderCostsNothing(t *testing.T) {
	f := newFS(t, nil)
	f.Record(nil)
	must(t, f.WriteFile(benchFile, []byte("x"), 0o644))
	text := []byte("y")
	for what, tt := range map[string]struct {
		most float64
		do   func() error
	}{
		"read":   {2, func() error { _, err := f.ReadFile(benchFile); return err }},
		"write":  {2, func() error { return f.WriteFile(benchFile, text, 0o644) }},
		"exists": {2, func() error { _, err := f.Exists(benchFile); return err }},
		"mkdir":  {1, func() error { return f.MkdirAll("a/b/c", 0o755) }},
	} {
		if got := testing.AllocsPerRun(100, func() {
			if err := tt.do(); err != nil {
				t.Error(err)
			}
		}); got > tt.most {
			t.Errorf("%s: %.0f allocations, want at most %.0f", what, got, tt.most)
		}
	}
}
