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

// TestApplyThereAndBack checks that applying makes the one tree of the other, and taking back the first again.
func TestApplyThereAndBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := genModel(rt, "tree")
		before, after, store := twoTrees(t, m.open(), mutate(rt, m).open())
		changes := Changes(before, after)
		work := filepath.Join(t.TempDir(), "w")
		_, err := Restore(before, store, work)
		must(t, err)
		opts := &SnapOptions{Scrubber: fakeScrubber{}}
		found := snap(t, work, opts)
		must(t, Apply(work, changes, store, false))
		if left := Changes(snap(t, work, opts), after); len(left) > 0 {
			rt.Errorf("applied, %q differs: %s, want %s", left[0].Path, describe(left[0].Before), describe(left[0].After))
		}
		var again *ConflictError
		if err := Apply(work, changes, store, false); err != nil && (!errors.As(err, &again) || !again.Done) {
			rt.Errorf("a second time: %v, want an error that says that it is done", err)
		}
		must(t, Apply(work, changes, store, true))
		if left := Changes(snap(t, work, opts), found); len(left) > 0 {
			rt.Errorf("taken back, %q differs: %s, want %s", left[0].Path, describe(left[0].Before), describe(left[0].After))
		}
	})
}

func TestApplyRefuses(t *testing.T) {
	before, after, store := twoTrees(t,
		model{"a": "1", "b": "1", "l": "->a", "gone": "x", ".env": "A=1", "d/x": "1", "e/x": "1", "x": "n"},
		model{"a": "2", "b": "2", "l": "->b", ".env": "A=2", "new": "1", "d": "file", "e/x": "2", "x": "*n"})
	outside := t.TempDir()
	model{"x": "1"}.build(t, outside)
	work := t.TempDir()
	model{"a": "1", "b": "other", "l": "->c", "gone": "y", ".env": "A=1", "new": "there", "d/x": "1", "d/mine": "1", "e": "->" + outside,
		"x": "*n"}.build(t, work)
	found := snap(t, work, &SnapOptions{Scrubber: fakeScrubber{}})
	err := Apply(work, Changes(before, after), store, false)
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	if conflict.Done {
		t.Error("it says that all of this was done before")
	}
	got := map[string]ConflictReason{}
	for _, c := range conflict.Conflicts {
		got[c.Path] = c.Why
	}
	want := map[string]ConflictReason{"b": ConflictDiffers, "l": ConflictDiffers, "gone": ConflictDiffers, ".env": ConflictSecret,
		"new": ConflictDiffers, "d": ConflictHolds, "e/x": ConflictLink, "x": ConflictDiffers}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if left := Changes(found, snap(t, work, &SnapOptions{Scrubber: fakeScrubber{}})); len(left) > 0 {
		t.Errorf("%v was written", left)
	}
}

func TestApplyRefusesHostileChanges(t *testing.T) {
	work := t.TempDir()
	store := cas.NewMemory()
	d, err := store.Put([]byte("x"))
	must(t, err)
	file := func(p string) *Entry { return &Entry{Path: p, Mode: Regular | 0o644, Digest: d, Size: 1} }
	for name, c := range map[string]Change{
		"up":        {Path: "../x", After: file("../x")},
		"absolute":  {Path: "/tmp/x", After: file("/tmp/x")},
		"two names": {Path: "a", After: file("../x")},
		"no blob":   {Path: "a", After: &Entry{Path: "a", Mode: Regular | 0o644, Digest: cas.Sum([]byte("gone"))}},
		"no mode":   {Path: "a", After: &Entry{Path: "a", Mode: 0o644}},
	} {
		var conflict *ConflictError
		if err := Apply(work, []Change{c}, store, false); !errors.As(err, &conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := snap(t, work, nil); len(left.Entries) > 0 {
		t.Errorf("written: %v", paths(left))
	}
}

func TestApplyPassesOverGit(t *testing.T) {
	before, after, store := twoTrees(t, model{".git/HEAD": "a", "x": "1"}, model{".git/HEAD": "b", "x": "2"})
	work := t.TempDir()
	model{".git/HEAD": "other", "x": "1"}.build(t, work)
	must(t, Apply(work, Changes(before, after), store, false))
	for p, want := range map[string]string{".git/HEAD": "other", "x": "2"} {
		if b, err := os.ReadFile(filepath.Join(work, p)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", p, b, err)
		}
	}
}
