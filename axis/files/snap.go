package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// DefaultMaxFileSize is the length in bytes of the longest file that a snapshot takes by itself: 64 MiB.
const DefaultMaxFileSize = 64 << 20

// A Scrubber takes secrets out of what is written; *scrub.Scrubber is one. Its methods are called by several goroutines.
type Scrubber interface {
	// Bytes returns b with a placeholder for each secret, and whether there was one.
	Bytes(b []byte) (out []byte, found bool)
	// KeyedDigest identifies b to whoever holds the project's key, and says nothing to anyone else.
	KeyedDigest(b []byte) string
	// CredentialFile reports whether the file at a path with slashes holds credentials by its place or name.
	CredentialFile(path string) bool
}

// SnapOptions says how a snapshot is taken. Nil and zero work.
type SnapOptions struct {
	// Store takes the contents; nil takes digests only. With a *cas.Dir the contents of files that did not change since
	// the snapshot of CachePath are hard links into the store of that one.
	Store cas.Store
	// Scrubber finds secrets; nil finds none, and then files that hold credentials by their name are not covered.
	Scrubber Scrubber
	// ScrubID names what Scrubber looks for. A cache made under another is not used.
	ScrubID string
	// Known is an earlier tree. A file that it has as secret, and whose true bytes are still those, is taken as it stands
	// there: the run that looks at it now may not know the secret.
	Known *Tree
	// Journal, when not nil, is of the run whose end this snapshot is of, with RootName among its roots. A file that it read
	// already, and that is as it was then, is not read again; Store has what the journal stored.
	Journal *Journal
	// Exclude lists absolute paths that are never taken, beside the directory .tapedeck at the root.
	Exclude []string
	// RootName is the path that the tree is known by; "" is that of the root itself. Exclude is relative to it, and a
	// snapshot through /proc/self/fd/N needs it.
	RootName string
	// CachePath is the file of the stat cache; "" is none.
	CachePath string
	// CacheFailed, when not nil, is told why the stat cache cannot be used; the snapshot is taken without it.
	CacheFailed func(error)
	// KeepCache leaves the stat cache as it is: it is read only.
	KeepCache bool
	// Times notes when each path was last written (Entry.MTime).
	Times bool
	// MaxFileSize is the length in bytes of the longest file taken; 0 is DefaultMaxFileSize.
	MaxFileSize int64
	// Workers is how many files are read at once; 0 is one for each processor, at least 2 and at most 4.
	Workers int
	// Progress, when not nil, is called now and then with the number of files done and of bytes read, never by two
	// goroutines at once.
	Progress func(files int, bytes int64)
}

// Snap takes a snapshot of the directory root. A file that vanishes meanwhile was never there; one that cannot be read is
// listed in NotCovered. The error is that of the root or of the store: nothing is reported as taken that is not in it.
//
// Memory grows with the number of files, not with their contents; one long file per worker is held at a time.
func Snap(root string, opts *SnapOptions) (*Tree, error) {
	o := opts.withDefaults(root)
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("files: snapshot: %w", err)
	}
	defer dir.Close()
	w := newWalker(dir, o.RootName, o.Exclude)
	cache, errCache := loadCache(o.CachePath, o.ScrubID)
	s, err := newSnapper(dir, &o, cache)
	if err != nil {
		return nil, fmt.Errorf("files: snapshot: %w", err)
	}
	defer s.top.letGo()
	began := time.Now()
	if err := s.readAll(w.walk); err != nil {
		return nil, fmt.Errorf("files: snapshot of %s: %w", o.RootName, err)
	}
	tree := &Tree{Root: o.RootName}
	if info, err := dir.Stat("."); err == nil && o.Times {
		tree.MTime = info.ModTime().UnixNano()
	}
	tree.Entries, tree.NotCovered = s.taken()
	tree.NotCovered = append(tree.NotCovered, w.notCovered...)
	hideNames(tree, o.Scrubber)
	tree.settle()
	if o.renewsCache() && errCache == nil {
		errCache = s.newCache(began.UnixNano()).save(o.CachePath)
	}
	if errCache != nil && o.CacheFailed != nil {
		o.CacheFailed(errCache)
	}
	return tree, nil
}

// withDefaults returns a copy of o in which every field has its value.
func (o *SnapOptions) withDefaults(root string) SnapOptions {
	var out SnapOptions
	if o != nil {
		out = *o
	}
	if out.RootName == "" {
		out.RootName = root
		if abs, err := filepath.Abs(root); err == nil {
			out.RootName = abs
		}
	}
	if out.MaxFileSize <= 0 {
		out.MaxFileSize = DefaultMaxFileSize
	}
	if out.Workers <= 0 {
		out.Workers = numWorkers()
	}
	return out
}

// settle puts the lists into order, keeps of what is not covered the topmost paths, and drops the entries whose
// directory did not make it into the tree.
func (t *Tree) settle() {
	t.sort()
	t.NotCovered = slices.CompactFunc(t.NotCovered, func(a, b NotCovered) bool { return a.Path == b.Path })
	all := &Tree{NotCovered: slices.Clone(t.NotCovered)}
	t.NotCovered = slices.DeleteFunc(t.NotCovered, func(n NotCovered) bool { return !all.Covers(parentOf(n.Path)) })
	dirs := make(map[string]bool)
	kept := t.Entries[:0]
	for _, e := range t.Entries {
		if p := parentOf(e.Path); p != "" && !dirs[p] {
			continue
		}
		if e.Mode.IsDir() {
			dirs[e.Path] = true
		}
		kept = append(kept, e)
	}
	t.Entries = kept
	t.Absent = slices.DeleteFunc(t.Absent, func(p string) bool { return parentOf(p) != "" && !dirs[parentOf(p)] })
}

// errSkipped says that a file is not to be taken, for the reason given.
type errSkipped struct{ reason Reason }

func (e *errSkipped) Error() string { return string(e.reason) }

// reasonOf returns why a file that could not be taken is not covered; ok is false for an error that ends the snapshot.
func reasonOf(err error) (why Reason, ok bool) {
	var skipped *errSkipped
	if errors.As(err, &skipped) {
		return skipped.reason, true
	}
	return "", false
}
