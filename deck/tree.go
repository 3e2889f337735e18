package deck

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// statCacheName is the file of a library that says which blobs hold the files of its work tree.
const statCacheName = "statcache"

func (r *recorder) snapOptions() *files.SnapOptions {
	return &files.SnapOptions{
		Store: r.s.store, Scrub: r.s.scrub,
		CachePath: r.cache, StorePath: r.s.storePath(),
		Exclude:  []string{r.lib.Dir, r.recDir},
		Progress: r.o.Progress,
	}
}

// snapBefore keeps the work tree as the run finds it.
func (r *recorder) snapBefore() error {
	if r.roots.Tree == "" {
		return nil
	}
	r.cache = filepath.Join(r.lib.Dir, statCacheName)
	t, err := files.Snap(r.roots.Tree, r.snapOptions())
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", r.roots.Tree, err)
	}
	r.before = t
	return writeWith(filepath.Join(r.recDir, treeName), t.WriteTo, r.o.Sync)
}

// snapAfter looks at the work tree as the run left it, at root.
func (r *recorder) snapAfter(root string) (err error) {
	if r.after, err = files.Snap(root, r.snapOptions()); err != nil {
		return fmt.Errorf("work tree after the run: %w", err)
	}
	return nil
}

// changes returns what the run changed in the work tree as records, and writes it as workspace.diff.
func (r *recorder) changes() ([]tape.Kind, error) {
	if r.before == nil || r.after == nil {
		return nil, nil
	}
	return r.s.changes(r.before, r.after, r.s.store, r.recDir, r.o.Sync)
}

// changes returns the records of what happened between two trees, and writes workspace.diff into dir. The contents of
// before lie in old, those of after in the session's own store.
func (s *session) changes(before, after *files.Tree, old cas.Store, dir string, sync bool) ([]tape.Kind, error) {
	cs := files.Changes(before, after)
	kinds, err := files.Records(cs, old, s.store, s.mask)
	if err != nil {
		return nil, err
	}
	err = writeWith(filepath.Join(dir, diffName), func(w *bufio.Writer) error {
		return files.WriteDiff(w, cs, old, s.store)
	}, sync)
	return kinds, err
}

// storePath is where the session's blobs lie.
func (s *session) storePath() string { return filepath.Join(s.dir, tapeName+".cas") }

// writeWith writes a file atomically through a buffer.
func writeWith(path string, fill func(*bufio.Writer) error, sync bool) error {
	return durable.WriteTo(path, func(f *os.File) error {
		w := bufio.NewWriter(f)
		if err := fill(w); err != nil {
			return err
		}
		return w.Flush()
	}, 0o644, sync)
}
