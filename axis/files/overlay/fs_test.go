package overlay_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// newFS returns a tree that is closed when the test ends.
func newFS(t testing.TB, o *overlay.Options) *overlay.FS {
	t.Helper()
	f, err := overlay.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// hostDir makes a directory with files: a name that ends with a slash is a directory, "-> x" behind one is a link.
func hostDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case name[len(name)-1] == '/':
			must(t, os.MkdirAll(path, 0o755))
		case len(text) > 3 && text[:3] == "-> ":
			must(t, os.Symlink(text[3:], path))
		default:
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadingIsThatOfIOFS runs the standard suite over trees of every sort.
func TestReadingIsThatOfIOFS(t *testing.T) {
	below := map[string]string{"a.txt": "a", "dir/b.txt": "bb", "dir/sub/c": "", "empty/": "", "latest": "-> dir/b.txt", "bin": "-> dir"}
	host := func() *overlay.FS { return newFS(t, &overlay.Options{Dir: hostDir(t, below)}) }
	change := func(f *overlay.FS) *overlay.FS {
		must(t, f.WriteFile("dir/new.txt", []byte("new"), 0o644))
		must(t, f.WriteFile("made/up/run.sh", []byte("#!/bin/sh\n"), 0o755))
		must(t, f.WriteFile("a.txt", []byte("changed"), 0o644))
		must(t, f.Symlink("../a.txt", "made/link"))
		return f
	}
	for name, tt := range map[string]struct {
		f    *overlay.FS
		want []string
	}{
		"memory":    {change(newFS(t, nil)), []string{"a.txt", "dir/new.txt", "made/up/run.sh", "made/link"}},
		"directory": {host(), []string{"a.txt", "dir/b.txt", "dir/sub/c", "empty", "latest", "bin"}},
		"both":      {change(host()), []string{"a.txt", "dir/b.txt", "dir/new.txt", "dir/sub/c", "empty", "latest", "made/up/run.sh"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := fstest.TestFS(tt.f, tt.want...); err != nil {
				t.Error(err)
			}
		})
	}
}
