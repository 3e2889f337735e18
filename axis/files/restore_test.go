package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// TestRestore checks that a restored tree has the same snapshot, but for secret files, which are left out by name.
func TestRestore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src, dst := t.TempDir(), filepath.Join(t.TempDir(), "new", "dir")
		genModel(rt, "tree").build(t, src)
		perm := os.FileMode(rapid.SampledFrom([]uint32{0o700, 0o755, 0o500, 0o1777}).Draw(rt, "perm"))
		must(t, os.MkdirAll(filepath.Join(src, "p", "q"), 0o755))
		must(t, os.WriteFile(filepath.Join(src, "p", "f"), nil, 0o600))
		must(t, os.Chmod(filepath.Join(src, "p"), perm&0o777|perm&0o1000<<11))
		store := cas.NewMemory()
		opts := &SnapOptions{Store: store, Scrubber: fakeScrubber{}}
		want := snap(t, src, opts)
		leftOut, err := Restore(want, store, dst)
		must(t, err)
		var secret []string
		for _, c := range Changes(want, snap(t, dst, opts)) {
			if c.Before == nil || c.Before.Secret == "" || c.After != nil {
				rt.Errorf("%q is %s, want %s", c.Path, describe(c.After), describe(c.Before))
			}
			secret = append(secret, c.Path)
		}
		if diff := cmp.Diff(secret, leftOut); diff != "" {
			rt.Error(diff)
		}
		for _, dir := range []string{src, dst} {
			must(t, os.Chmod(filepath.Join(dir, "p"), 0o755)) // so that it can be removed
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	store := cas.NewMemory()
	full := t.TempDir()
	model{"x": ""}.build(t, full)
	if _, err := Restore(&Tree{}, store, full); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a directory that is not empty: %v", err)
	}
	d, err := store.Put(nil)
	must(t, err)
	outside := t.TempDir()
	hostile := &Tree{Entries: []Entry{
		{Path: "l", Mode: Link | 0o777, Target: outside},
		{Path: "l/x", Mode: Regular | 0o644, Digest: d},
	}}
	if _, err := Restore(hostile, store, filepath.Join(t.TempDir(), "w")); !errors.Is(err, ErrTree) {
		t.Errorf("a path through a link: %v", err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Error("written through a link")
	}
	missing := &Tree{Entries: []Entry{{Path: "x", Mode: Regular | 0o644, Digest: cas.Sum([]byte("gone")), Size: 4}}}
	var gone *cas.MissingError
	if _, err := Restore(missing, store, filepath.Join(t.TempDir(), "w")); !errors.As(err, &gone) {
		t.Errorf("a missing blob: %v", err)
	}
}
