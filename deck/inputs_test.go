package deck

import (
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// TestDiffering: what Git keeps, of which a fresh clone has more than is looked at, comes after what may be the cause.
func TestDiffering(t *testing.T) {
	tree := func(content string, paths ...string) *files.Tree {
		tr := &files.Tree{}
		for _, p := range paths {
			tr.Entries = append(tr.Entries, files.Entry{Path: p, Digest: cas.Sum([]byte(content))})
		}
		return tr
	}
	a := tree("1", ".git/index", ".git/objects/1", "prompt.txt", "sub/.git/HEAD", "x.git/y")
	b := tree("2", ".git/index", ".git/objects/2", "new.txt", "prompt.txt", "sub/.git/HEAD", "x.git/y")
	want := []string{"prompt.txt", "x.git/y", "new.txt", ".git/index", ".git/objects/1", "sub/.git/HEAD", ".git/objects/2"}
	if got := differing(a, b); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestTreeInputs: a long file is looked through, a program of Go say, as far as there is room for it.
func TestTreeInputs(t *testing.T) {
	store := cas.NewMemory()
	tree := func(sizes ...int64) *files.Tree {
		tr := &files.Tree{}
		for i, size := range sizes {
			d, err := store.Put([]byte{byte(i)})
			if err != nil {
				t.Fatal(err)
			}
			tr.Entries = append(tr.Entries, files.Entry{Path: string(rune('a' + i)), Digest: d, Size: size})
		}
		return tr
	}
	was, now := tree(9<<20, 40<<20, 1), tree(9<<20, 40<<20, 1)
	var read []bool
	for _, in := range treeInputs([]string{"a", "b", "c"}, was, now, store, store) {
		b, err := in.Bytes(fidelity.Replay)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, b != nil)
	}
	if want := []bool{true, false, true}; !slices.Equal(read, want) {
		t.Errorf("read %v, want %v", read, want)
	}
}
