package files

import (
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// twoTrees snapshots two models, with one store.
func twoTrees(t testing.TB, before, after model) (*Tree, *Tree, *cas.Memory) {
	t.Helper()
	store := cas.NewMemory()
	one, two := t.TempDir(), t.TempDir()
	before.build(t, one)
	after.build(t, two)
	opts := &SnapOptions{Store: store, Scrubber: fakeScrubber{}}
	return snap(t, one, opts), snap(t, two, opts), store
}

func TestRecords(t *testing.T) {
	big := string(make([]byte, 5000))
	before, after, store := twoTrees(t,
		model{"edit": "a", "gone": "b", "mode": "m", "same": "s", "type": "t", "d/x": "x", ".env": "A=1", "\xff": "n", "~/x": ""},
		model{"edit": "aa", "mode": "*m", "same": "s", "type": "->same", "d": "file", ".env": "A=2", "\xff": "N", "big": big, "~/x": "y"})
	var got []string
	for rec, err := range records(Changes(before, after), store) {
		must(t, err)
		got = append(got, rec.Kind.Name()+" "+tape.ChangedFile(rec.Kind).Path+" "+tape.ChangedFile(rec.Kind).Mode)
		checkRecord(t, rec, store)
	}
	want := []string{"file_write .env 100644", "file_write big 100644", "file_write d 100644", "file_delete d/x ", "file_write edit 100644",
		"file_delete gone ", "file_write mode 100755", "file_write type 120000", "file_write ./~/x 100644", "file_write \ufffd 100644"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func checkRecord(t *testing.T, rec tape.Record, store cas.Store) {
	t.Helper()
	f := tape.ChangedFile(rec.Kind)
	if (f.Path == ".env") != (len(f.Extra) == 1 && f.Extra[0].Name == "secret") {
		t.Errorf("%s: extra %v", f.Path, f.Extra)
	}
	if (f.Path == "\ufffd") != (len(rec.Raw) == 1 && string(rec.Raw[0].Bytes) == "\xff") {
		t.Errorf("%q: raw %v", f.Path, rec.Raw)
	}
	if rec.Kind.Name() == "file_delete" {
		if f.Before == nil || f.Content != nil {
			t.Errorf("%s: before %v, content %v", f.Path, f.Before, f.Content)
		}
		return
	}
	b, err := store.Get(f.ContentHash)
	must(t, err)
	if int64(len(b)) != f.LenBytes || f.Content.Hash != f.ContentHash {
		t.Errorf("%s: %+v", f.Path, f)
	}
	if f.Content.Inline != (f.Path != "big") || f.Content.Inline && f.Content.Text != string(b) {
		t.Errorf("%s: content %+v", f.Path, f.Content)
	}
}

func TestChangesPassesOverWhatIsNotKnown(t *testing.T) {
	before, after, _ := twoTrees(t,
		model{"a": "1", "b/c": "1", ".gitignore": "x\n", "x": "1"},
		model{"a": "1", "b/c": "2", ".gitignore": "b\n", "x": "2"})
	var got []string
	for _, c := range Changes(before, after) {
		got = append(got, c.Path)
	}
	if diff := cmp.Diff([]string{".gitignore"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAfter checks that the records of a run lead from the tree that it found to the one that it left.
func TestAfter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := genModel(rt, "tree")
		before, after, store := twoTrees(t, m, mutate(rt, m))
		var recs []*tape.Record
		for rec, err := range records(Changes(before, after), store) {
			must(t, err)
			recs = append(recs, &rec)
			if _, wrote := rec.Kind.(*tape.FileWrite); before.Holds(&rec) || after.Holds(&rec) != wrote {
				rt.Errorf("%+v: held before %v, after %v", rec.Kind, before.Holds(&rec), after.Holds(&rec))
			}
		}
		got, err := After(before, pairs(recs), store)
		must(t, err)
		must(t, got.Validate())
		for _, c := range Changes(got, after) {
			if _, _, ok := c.sides(); ok {
				rt.Errorf("%q: records made %s, not %s", c.Path, describe(c.Before), describe(c.After))
			}
		}
	})
}

func pairs(recs []*tape.Record) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for r := range slices.Values(recs) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestAfterRefuses(t *testing.T) {
	write := func(path, mode string) *tape.Record {
		return &tape.Record{Kind: &tape.FileWrite{File: tape.File{Path: path, Mode: mode, ContentHash: cas.Sum(nil)}}}
	}
	for name, rec := range map[string]*tape.Record{
		"up": write("../x", ""), "up inside": write("a/../../x", ""), "mode": write("a", "020000"), "link": write("l", "120000"),
	} {
		if _, err := After(&Tree{}, pairs([]*tape.Record{rec}), cas.NewMemory()); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, p := range []string{"/abs", "~/home", "$TMP/x"} {
		tree, err := After(&Tree{}, pairs([]*tape.Record{write(p, "")}), cas.NewMemory())
		if err != nil || len(tree.Entries) != 0 {
			t.Errorf("%s: %v, %v", p, tree, err)
		}
	}
}
