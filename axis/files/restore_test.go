package files

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// TestTakeTimes: what is as it was has its times of then, and what differs is younger than all of that, as make expects.
func TestTakeTimes(t *testing.T) {
	file := func(path string, at int64, content string) Entry {
		return Entry{Path: path, Mode: Regular | 0o644, Size: int64(len(content)), Digest: cas.Sum([]byte(content)), MTime: at}
	}
	dir := func(path string, at int64) Entry { return Entry{Path: path, Mode: Dir | 0o755, MTime: at} }
	was := &Tree{MTime: 30, Entries: []Entry{file("in", 10, "1"), file("old", 0, "x"), file("out", 20, "2"), dir("plugins", 15), file("plugins/a", 14, "a")}}
	for name, c := range map[string]struct {
		now  *Tree
		want []int64 // of the root, then of the entries
	}{
		"a checkout": {
			&Tree{MTime: 90, Entries: []Entry{file("in", 91, "1"), file("old", 92, "x"), file("out", 93, "2"), dir("plugins", 94), file("plugins/a", 95, "a")}},
			[]int64{30, 10, 92, 20, 15, 14},
		},
		"an edit in one older than the recording": {
			&Tree{MTime: 5, Entries: []Entry{file("in", 6, "3"), file("old", 5, "x"), file("out", 7, "2"), dir("plugins", 5), file("plugins/a", 5, "a")}},
			[]int64{30, 31, 5, 20, 15, 14},
		},
		"a file more": {
			&Tree{MTime: 30, Entries: []Entry{file("in", 10, "1"), file("old", 0, "x"), file("out", 20, "2"), dir("plugins", 99), file("plugins/a", 14, "a"), file("plugins/b", 98, "b")}},
			[]int64{30, 10, 0, 20, 99, 14, 98},
		},
	} {
		c.now.TakeTimes(was)
		got := []int64{c.now.MTime}
		for _, e := range c.now.Entries {
			got = append(got, e.MTime)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
