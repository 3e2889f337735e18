package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
)

func TestSnapCovers(t *testing.T) {
	root := t.TempDir()
	model{
		".gitignore": "# rules\n*.log\n/build/\n!keep.log\n", "sub/.gitignore": "tmp\n", ".git/HEAD": "ref: x\n", ".git/info/exclude": "local\n",
		".git/x.log": "covered", "a.log": "", "keep.log": "", "build/x/y": "", "sub/tmp/z": "", "sub/build/b": "*", "local": "",
		"big": strings.Repeat("x", 1001), "fits": strings.Repeat("x", 1000), "l": "->nowhere", "empty": "/", ".tapedeck/r/x": "", "out.rec/x": "",
		"\xff": "name",
	}.build(t, root)
	store := cas.NewMemory()
	tree := snap(t, root, &SnapOptions{Store: store, MaxFileSize: 1000, Exclude: []string{filepath.Join(root, "out.rec"), "/elsewhere"}})
	want := []string{".git", ".git/HEAD", ".git/info", ".git/info/exclude", ".git/x.log", ".gitignore", "empty", "fits", "keep.log", "l",
		"sub", "sub/.gitignore", "sub/build", "sub/build/b", "\xff"}
	if diff := cmp.Diff(want, paths(tree)); diff != "" {
		t.Error(diff)
	}
	left := []NotCovered{{".tapedeck", Excluded}, {"a.log", Ignored}, {"big", TooLarge}, {"build", Ignored}, {"local", Ignored},
		{"out.rec", Excluded}, {"sub/tmp", Ignored}}
	if diff := cmp.Diff(left, tree.NotCovered); diff != "" {
		t.Error(diff)
	}
	e, ok := tree.Lookup("\xff")
	if b, err := store.Get(e.Digest); !ok || err != nil || string(b) != "name" || e.Size != 4 {
		t.Errorf("%+v: %q, %v", e, b, err)
	}
	if tree.Covers("build/x") || !tree.Covers("builds") || !tree.Covers("sub/build") {
		t.Error("Covers is wrong")
	}
}

func TestSnapSecrets(t *testing.T) {
	root := t.TempDir()
	model{"conf": "password=" + secretWord, ".env": "SHORT=pw1\n", "plain": "x", "l": "->" + secretWord, secretWord + "/x": "y"}.build(t, root)
	store := cas.NewMemory()
	tree := snap(t, root, &SnapOptions{Store: store, Scrubber: fakeScrubber{}})
	if diff := cmp.Diff([]string{".env", "conf", "plain"}, paths(tree)); diff != "" {
		t.Error(diff)
	}
	left := []NotCovered{{"l", SecretName}, {placeholder, SecretName}}
	if diff := cmp.Diff(left, tree.NotCovered); diff != "" {
		t.Error(diff)
	}
	for _, e := range tree.Entries {
		b, err := store.Get(e.Digest)
		must(t, err)
		if strings.Contains(string(b), secretWord) || strings.Contains(string(b), "pw1") {
			t.Errorf("%s holds the secret", e.Path)
		}
		if (e.Secret != "") != (e.Path != "plain") {
			t.Errorf("%s: secret %q", e.Path, e.Secret)
		}
	}
	bare := snap(t, root, &SnapOptions{Store: cas.NewMemory()})
	if _, ok := bare.Lookup(".env"); ok {
		t.Error("credentials are taken without a scrubber")
	}
}

// reads takes a snapshot and returns how many bytes of content it read.
func reads(t *testing.T, root string, opts SnapOptions) (*Tree, int64) {
	t.Helper()
	var n int64
	opts.Progress = func(_ int, bytes int64) { n = bytes }
	return snap(t, root, &opts), n
}

func TestSnapCache(t *testing.T) {
	dir := t.TempDir()
	root, cache := filepath.Join(dir, "tree"), filepath.Join(dir, "cache")
	model{"a": "one", "d/b": "two", "s": secretWord}.build(t, root)
	age(t, root)
	opts := SnapOptions{Scrubber: fakeScrubber{}, ScrubID: "k1", CachePath: cache}
	into := func(name string) SnapOptions {
		o := opts
		o.Store = openStore(t, filepath.Join(dir, name))
		return o
	}
	first, n := reads(t, root, into("s1"))
	if n == 0 {
		t.Fatal("nothing was read")
	}
	second, n := reads(t, root, into("s2"))
	if diff := cmp.Diff(first, second); diff != "" || n != 0 {
		t.Errorf("%d bytes read of an unchanged tree\n%s", n, diff)
	}
	sameBlobs(t, second, openStore(t, filepath.Join(dir, "s1")), openStore(t, filepath.Join(dir, "s2")))
	if _, n := reads(t, root, into("s2")); n != 0 {
		t.Errorf("%d bytes read of an unchanged tree whose contents are in the store", n)
	}

	must(t, os.WriteFile(filepath.Join(root, "a"), []byte("ONE"), 0o644))
	if _, n := reads(t, root, into("s3")); n != 3 {
		t.Errorf("%d bytes read of one changed file of 3", n)
	}
	if _, n := reads(t, root, into("s4")); n != 3 {
		t.Errorf("%d bytes read of one racy file of 3", n)
	}
	other := into("s5")
	other.ScrubID = "k2"
	if _, n := reads(t, root, other); n == 3 || n == 0 {
		t.Errorf("%d bytes read with another scrubber", n)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "s5")))
	other = into("s6")
	other.ScrubID = "k2"
	if tree, n := reads(t, root, other); n == 0 {
		t.Errorf("nothing read although the earlier store is gone")
	} else {
		sameBlobs(t, tree, other.Store, nil)
	}
}

// An unasked store has whoever asks it for the size of a blob fail.
type unasked struct{ cas.Store }

func (unasked) Size(cas.Digest) (int64, error) { return 0, errors.New("asked") }

// TestSnapOfKnown takes the snapshot after a run that changed nothing: what the one before put into the store is not looked for.
func TestSnapOfKnown(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "tree")
	model{"a": "one", "d/b": "two", "s": secretWord}.build(t, root)
	age(t, root)
	opts := SnapOptions{Store: cas.NewMemory(), Scrubber: fakeScrubber{}, CachePath: filepath.Join(dir, "cache")}
	first := snap(t, root, &opts)
	opts.Store, opts.Known, opts.KeepCache = unasked{opts.Store}, first, true
	second, n := reads(t, root, opts)
	if diff := cmp.Diff(first, second); diff != "" || n != 0 {
		t.Errorf("%d bytes read of an unchanged tree\n%s", n, diff)
	}
}

// sameBlobs checks that every blob of t is in a and, where b is a directory too, is one inode in both.
func sameBlobs(t *testing.T, tree *Tree, a cas.Store, b *cas.Dir) {
	t.Helper()
	for _, e := range tree.Entries {
		if !e.Mode.IsRegular() {
			continue
		}
		if _, err := a.Get(e.Digest); err != nil {
			t.Errorf("%s: %v", e.Path, err)
		}
		if b == nil {
			continue
		}
		one, err := os.Stat(a.(*cas.Dir).Path(e.Digest))
		must(t, err)
		two, err := os.Stat(b.Path(e.Digest))
		must(t, err)
		if !os.SameFile(one, two) {
			t.Errorf("%s is no hard link", e.Path)
		}
	}
}

func TestSnapDamagedCache(t *testing.T) {
	dir := t.TempDir()
	root, cache := filepath.Join(dir, "tree"), filepath.Join(dir, "cache")
	model{"a": "one"}.build(t, root)
	age(t, root)
	opts := SnapOptions{Store: openStore(t, filepath.Join(dir, "s")), CachePath: cache}
	want, _ := reads(t, root, opts)
	good, err := os.ReadFile(cache)
	must(t, err)
	for name, b := range map[string][]byte{
		"cut": good[:len(good)-1], "empty": {}, "text": []byte("hello"), "flipped": append([]byte{good[0] ^ 1}, good[1:]...),
		"flipped inside": append(append(slices.Clone(good[:40]), good[40]^1), good[41:]...),
	} {
		must(t, os.WriteFile(cache, b, 0o600))
		got, n := reads(t, root, opts)
		if diff := cmp.Diff(want, got); diff != "" || n != 3 {
			t.Errorf("%s: %d bytes read\n%s", name, n, diff)
		}
	}
}

func FuzzStatCache(f *testing.F) {
	c := &statCache{store: "/s", scrubID: "k", began: 1 << 60, entries: map[string]cached{"a": {secret: "x"}}}
	f.Add(c.encode()[:len(c.encode())-cas.Size])
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := cas.Sum(b)
		got, err := decodeCache(append(b, sum[:]...))
		if err == nil && len(got.entries) > len(b) {
			t.Errorf("%d entries of %d bytes", len(got.entries), len(b))
		}
	})
}

func TestSnapErrors(t *testing.T) {
	if _, err := Snap(filepath.Join(t.TempDir(), "absent"), nil); err == nil {
		t.Error("a root that is absent has a snapshot")
	}
	root := t.TempDir()
	model{"a": "x"}.build(t, root)
	bad := openStore(t, filepath.Join(root, "s"))
	must(t, os.MkdirAll(bad.Path(cas.Sum([]byte("x"))), 0o755))
	if _, err := Snap(root, &SnapOptions{Store: bad, Exclude: []string{filepath.Join(root, "s")}}); err == nil {
		t.Error("a store that cannot take a blob does not end the snapshot")
	}
}

// The workers that have failed must not leave the walk waiting for them.
func TestSnapOfManyFilesEndsWithTheStoresError(t *testing.T) {
	root, m := t.TempDir(), model{}
	for i := range 3 * foundAhead {
		m[fmt.Sprint("d/f", i)] = "x"
	}
	m.build(t, root)
	at := filepath.Join(t.TempDir(), "s")
	store := openStore(t, at)
	must(t, os.WriteFile(at, nil, 0o600)) // a file where the directory of the store should be made
	if tree, err := Snap(root, &SnapOptions{Store: store}); err == nil {
		t.Errorf("%d entries in a store that takes none", len(tree.Entries))
	}
}

// BenchmarkSnap compares the first snapshot of 20,000 files with one of the same tree unchanged.
func BenchmarkSnap(b *testing.B) {
	dir := b.TempDir()
	root, cache := filepath.Join(dir, "tree"), filepath.Join(dir, "cache")
	m := model{}
	for i := range 20000 {
		m[fmt.Sprintf("d%d/e%d/f%d.go", i%20, i%400, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 300)
	}
	m.build(b, root)
	age(b, root)
	n := 0
	run := func(b *testing.B, prepare func()) {
		for b.Loop() {
			b.StopTimer()
			prepare()
			n++
			store := openStore(b, filepath.Join(dir, fmt.Sprint("s", n)))
			b.StartTimer()
			snap(b, root, &SnapOptions{Store: store, CachePath: cache})
		}
	}
	b.Run("first", func(b *testing.B) { run(b, func() { os.Remove(cache) }) })
	b.Run("unchanged", func(b *testing.B) { run(b, func() {}) })
}
