package deck_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck"
)

// TestLateProgress: what is told of the search for what became known late never goes back, and counts each record once, and
// each content of the work tree.
func TestLateProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", serveLate(lateSecret, "plain"))
	b.putNote(lateSecret)
	b.put("readme.md", "nothing\n")
	before := treeOf(t, b.dir)
	argv, env := b.self("late", "https://api.example.com", "file", "plain")
	last, ended := 0, false
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts,
		Hiding: func(items int, _ int64, done bool) {
			if items < last || ended {
				t.Errorf("told %d after %d", items, last)
			}
			last, ended = items, done
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := res.Recording.Manifest.Records
	contents := make(map[string]bool)
	for _, tree := range []*files.Tree{before, treeOf(t, b.dir)} {
		for _, e := range tree.Entries {
			if !e.Digest.IsZero() {
				contents[e.Digest.String()] = true
			}
		}
	}
	want += len(contents) + 1 // of config.json there are two: as it was found, and scrubbed as it was left
	if last != want || !ended {
		t.Errorf("told %d at the end, want %d", last, want)
	}
	lookFor(t, res.Recording.Dir, lateSecret)
}

// treeOf is the work tree as it is now, whose contents nobody looks into.
func treeOf(t *testing.T, dir string) *files.Tree {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
		t.Fatal(err)
	}
	tree, err := files.Snap(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
