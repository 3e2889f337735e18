package deck

import (
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
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
