package deck

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A trees takes and compares the snapshots of one run.
type trees struct {
	s       *session
	root    string    // of the work tree, as the program knows it
	cache   string    // path of the stat cache; "" for none
	exclude []string  // recordings
	store   cas.Store // of what the run found
	made    cas.Store // of what it made of that, and of all that store has
	journal func() *files.Journal

	at     time.Time   // before is what stood there then
	before *files.Tree // nil where no snapshot was taken
	after  *files.Tree
}

// snap takes a snapshot through root: the work tree itself, or a way to it through the jail. o says what differs from one to
// the next.
func (t *trees) snap(root string, o files.SnapOptions) (*files.Tree, error) {
	o.Scrubber, o.ScrubID, o.RootName, o.Known = t.s.scrub, t.s.id, t.root, t.before
	o.Exclude, o.CachePath, o.CacheFailed, o.Times = t.exclude, t.cache, t.withoutCache, true
	return files.Snap(root, &o)
}

// withoutCache goes on without the stat cache, which saves time and decides nothing.
func (t *trees) withoutCache(err error) {
	t.cache = ""
	t.s.log.Warn("no stat cache: every file of the work tree is read again", "err", err)
}

// takeBefore keeps the work tree as the run finds it, and writes tree.json.
func (t *trees) takeBefore(progress func(files int, bytes int64, done bool), sync bool) (err error) {
	if t.root == "" {
		return nil
	}
	var step func(int, int64)
	if progress != nil {
		step = func(files int, bytes int64) { progress(files, bytes, false) }
		defer progress(0, 0, true)
	}
	t.at = time.Now()
	if t.before, err = t.snap(t.root, files.SnapOptions{Store: t.store, Progress: step}); err != nil {
		return err
	}
	return recording.WriteWith(filepath.Join(t.s.dir, recording.TreeName), t.before.Encode, sync)
}

// takeAfter looks at the work tree as the run left it.
func (t *trees) takeAfter(root string) (err error) {
	if t.before == nil {
		return nil
	}
	if t.after, err = t.snap(root, files.SnapOptions{Store: t.made, Journal: t.journal(), KeepCache: true}); err != nil {
		err = fmt.Errorf("work tree after the run: %w", err)
		t.s.fail(err)
		return err
	}
	return nil
}

// keep restores the tree that the run left into dir, "" for none, and says what is not there.
func (t *trees) keep(dir string) (notes []string, err error) {
	if dir == "" {
		return nil, nil
	}
	left, err := files.Restore(t.after, t.made, dir)
	for _, path := range left {
		notes = append(notes, path+" holds a secret and was not kept")
	}
	return notes, err
}

// adopt puts the tree that the run found, with its contents, beside the session's tape: a replay that is to stand by itself
// must not lean on the recording that it replayed.
func (t *trees) adopt(from cas.Store) error {
	if t.before == nil {
		return nil
	}
	if err := adoptBlobs(t.s.store, from, t.before); err != nil {
		return err
	}
	return recording.WriteWith(filepath.Join(t.s.dir, recording.TreeName), t.before.Encode, false)
}

// adoptBlobs puts the contents of t from one store into another.
func adoptBlobs(to, from cas.Store, t *files.Tree) error {
	for _, e := range t.Entries {
		if e.Digest.IsZero() {
			continue
		}
		if err := adoptBlob(to, from, e.Digest); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	return nil
}

// adoptBlob puts one content into a store, unless it is there.
func adoptBlob(to, from cas.Store, d cas.Digest) error {
	if _, err := to.Size(d); err == nil {
		return nil
	}
	return cas.Copy(to, from, d)
}

// write writes what the run changed in the work tree as workspace.diff.
func (t *trees) write(sync bool) error {
	if t.before == nil || t.after == nil {
		return nil
	}
	return recording.WriteWith(filepath.Join(t.s.dir, recording.DiffName), func(w io.Writer) error {
		return files.WritePatch(w, files.Changes(t.before, t.after), t.made)
	}, sync)
}

// What of a work tree no snapshot covers is copied up to these bounds for a replay outside the jail.
const (
	maxCopiedFiles = 20_000
	maxCopiedBytes = 256 << 20
)

// A copyBudget is what may still be copied.
type copyBudget struct {
	files int
	bytes int64
}

// errTooMuch ends a walk that exceeds a budget.
var errTooMuch = errors.New("too much to copy")

// fits reports whether path, and all below it, may be copied, and takes it off the budget where it may.
func (c *copyBudget) fits(path string) bool {
	left := *c
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be looked at is not copied
		}
		left.files--
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			left.bytes -= info.Size()
		}
		if left.files < 0 || left.bytes < 0 {
			return errTooMuch
		}
		return nil
	})
	if err != nil {
		return false
	}
	*c = left
	return true
}

// copyInto copies the file, link or directory at from to path below root. Sockets, FIFOs, devices and what cannot be read are
// left out; the first error is returned in the end.
func copyInto(root *os.Root, path, from string) error {
	var first error
	err := filepath.WalkDir(from, func(at string, e fs.DirEntry, err error) error {
		rel, errRel := filepath.Rel(from, at)
		if err = errors.Join(err, errRel); err == nil {
			err = copyOne(root, filepath.Join(path, rel), at, e)
		}
		if err != nil && first == nil {
			first = err
		}
		if err != nil && e != nil && e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return errors.Join(err, first)
}

func copyOne(root *os.Root, to, from string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return root.Mkdir(to, info.Mode().Perm()|0o700)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return root.Symlink(target, to)
	case !info.Mode().IsRegular():
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
