package files

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// someCall draws a call and carries it out below dir, as a watched program would. That it fails is no failure of the test.
func (p *program) someCall(rt *rapid.T, dir string) {
	path := func(label string) string {
		return filepath.Join(dir, strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "ü", "ign", ".env"}), 1, 3).Draw(rt, label), "/"))
	}
	switch rapid.IntRange(0, 11).Draw(rt, "call") {
	case 0, 1, 2:
		_ = p.write(path("write"), rapid.SampledFrom([]string{"", "x", "y\n", "pw=" + secretWord, "bin\x00\xff", strings.Repeat("long ", 2000)}).Draw(rt, "text"))
	case 3:
		_ = p.mkdir(path("mkdir"))
	case 4, 5:
		_ = p.remove(path("remove"))
	case 6:
		_ = p.rename(path("old"), path("new"))
	case 7:
		_ = p.exchange(path("one"), path("two"))
	case 8:
		_ = p.link(path("target"), path("link"))
	case 9:
		_ = p.symlink(rapid.SampledFrom([]string{"a", "../b", "nowhere"}).Draw(rt, "to"), path("symlink"))
	case 10:
		at, mode := path("chmod"), rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o700}).Draw(rt, "mode")
		if info, err := os.Stat(at); err == nil && info.IsDir() && os.Geteuid() != 0 {
			mode |= 0o700 // the test must look into it
		}
		_ = p.chmod(at, mode)
	case 11:
		_ = p.write(filepath.Join(dir, ".gitignore"), rapid.SampledFrom([]string{"ign\n", "", "b\n", "!b\nign/\n"}).Draw(rt, "rules"))
	}
}

// start draws what a run finds.
func start(rt *rapid.T, dir string, t testing.TB) {
	m := model{}
	for range rapid.IntRange(0, 10).Draw(rt, "files") {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "ü", "ign", ".env"}), 1, 3).Draw(rt, "path")
		m.add(strings.Join(parts, "/"), rapid.SampledFrom([]string{"", "x", "old\n", "*#!", "->a", "/", "pw=" + secretWord}).Draw(rt, "content"))
	}
	if rapid.Bool().Draw(rt, "with rules") {
		m.add(".gitignore", "ign\n")
	}
	m.build(t, dir)
}

// TestJournalOfAWorkTree: whatever a run does, the records make of the tree that it found the tree that it left, as Git sees it.
func TestJournalOfAWorkTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, done := scratch(t)
		defer done()
		start(rt, dir, t)
		store := cas.NewMemory()
		opts := &SnapOptions{Store: store, Scrubber: fakeScrubber{}}
		before := snap(t, dir, opts)
		jo := &JournalOptions{Store: store, Scrubber: fakeScrubber{}}
		if rapid.Bool().Draw(rt, "staged") {
			staging, err := NewStaging(store, t.TempDir())
			must(t, err)
			defer staging.Close()
			jo.Staged = staging
			opts = &SnapOptions{Store: staging, Scrubber: fakeScrubber{}}
		}
		p := newProgram(t, jo, JournalRoot{Dir: dir, Tree: before})
		p.store = cmp.Or(jo.Staged, p.store)
		for range rapid.IntRange(0, 25).Draw(rt, "calls") {
			p.someCall(rt, dir)
			if rapid.IntRange(0, 4).Draw(rt, "barrier") == 0 {
				p.take(p.j.Barrier())
			}
		}
		if rapid.Bool().Draw(rt, "unannounced") {
			_ = os.WriteFile(filepath.Join(dir, "b"), []byte("by the way"), 0o644)
		}
		after := snap(t, dir, opts)
		p.take(p.j.End(after))
		played, err := After(before, p.records(), p.store)
		must(t, err)
		must(t, played.Validate())
		compareAsGit(rt, played, after)
		if left := p.take(p.j.Barrier()); len(left) > 0 {
			rt.Errorf("after the end: %q", left)
		}
		compareAsGit(rt, applied(rt, before, Changes(before, played)), applied(rt, before, Changes(before, after)))
	})
}

// applied is what the patch of changes makes of a tree, as far as Git sees it.
func applied(rt *rapid.T, t *Tree, changes []Change) *Tree {
	all := make(map[string]Entry)
	for _, e := range t.Entries {
		all[e.Path] = e
	}
	for _, c := range changes {
		if _, _, ok := c.sides(); !ok {
			continue
		}
		delete(all, c.Path)
		if c.After != nil {
			all[c.Path] = *c.After
		}
	}
	out := &Tree{Entries: slices.Collect(maps.Values(all)), NotCovered: t.NotCovered}
	out.sort()
	return out
}

// compareAsGit reports where two trees differ for Git.
func compareAsGit(rt *rapid.T, got, want *Tree) {
	for _, c := range Changes(got, want) {
		if _, _, ok := c.sides(); ok {
			rt.Errorf("%q is %s, want %s", c.Path, describe(c.Before), describe(c.After))
		}
	}
}

// TestJournalFindsTheStart: the layer of what was found shows, above what a run left, what it found, whatever it did.
func TestJournalFindsTheStart(t *testing.T) {
	skipWithoutWhiteouts(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, done := scratch(t)
		defer done()
		start(rt, dir, t)
		openly := func(path string) *Tree { return snapAll(t, path) }
		want := openly(dir)
		store := cas.NewMemory()
		p := newProgram(t, &JournalOptions{Store: store}, JournalRoot{Dir: dir, Prefix: "~/"})
		for range rapid.IntRange(0, 25).Draw(rt, "calls") {
			p.someCall(rt, dir)
			if rapid.IntRange(0, 4).Draw(rt, "barrier") == 0 {
				p.take(p.j.Barrier())
			}
		}
		p.take(p.j.End(nil))
		found := p.j.Found(0)
		must(t, found.Validate())
		aside, done := scratch(t)
		defer done()
		layer, out := filepath.Join(aside, "layer"), filepath.Join(aside, "merged")
		stats, err := BuildLayer(found, store, dir, layer, nil)
		must(t, err)
		merge(t, layer, dir, out)
		for _, c := range Changes(want, openly(out)) {
			if !found.Covers(c.Path) {
				continue
			}
			rt.Errorf("%q shows %s, found was %s", c.Path, describe(c.After), describe(c.Before))
		}
		for _, n := range found.NotCovered {
			if n.Reason != SecretName {
				rt.Errorf("not covered: %v", n)
			}
		}
		if len(stats.Notes) > 0 {
			rt.Errorf("notes: %v", stats.Notes)
		}
	})
}

// snapAll takes a snapshot that no rules of ignored files make smaller.
func snapAll(t testing.TB, dir string) *Tree {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	out := &Tree{Root: dir}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		must(t, err)
		rel, err := filepath.Rel(dir, path)
		must(t, err)
		e := Entry{Path: rel}
		e.Mode, _ = ModeOf(info.Mode())
		switch {
		case e.Mode.IsLink():
			e.Target, err = os.Readlink(path)
		case e.Mode.IsRegular():
			b, errRead := os.ReadFile(path)
			e.Digest, e.Size, err = cas.Sum(b), int64(len(b)), errRead
		}
		out.Entries = append(out.Entries, e)
		return err
	}))
	out.sort()
	return out
}

// scratch makes a directory that is gone before the test ends, for tests that need very many.
func scratch(t testing.TB) (dir string, done func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "journal")
	must(t, err)
	return dir, func() { os.RemoveAll(dir) }
}
