package files

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Tree is a snapshot of a directory, or, where it is partial, of the paths in it that a run touched.
type Tree struct {
	Root       string       // the absolute path that it was taken from
	MTime      int64        // when that was last written, as Entry.MTime; 0 for not known
	Entries    []Entry      // in ascending order of Path, byte by byte; the root itself is not listed
	NotCovered []NotCovered // in ascending order of Path

	// Partial says that the tree speaks of its entries, of Absent and of nothing else: what it does not name is as it is.
	Partial bool
	// Absent holds paths at which nothing stood, and so nothing below: the topmost only, in ascending order. The directory
	// that holds one is an entry, or the root. It is of partial trees, and of whole ones that were joined with one (With).
	Absent []string
	// Moved holds directories that the run renamed, in ascending order: an overlay renames none that lie in a lower layer, so
	// that BuildLayer must hold them whole. All that the run found below is among the entries.
	Moved []string
}

// An Entry is one directory, regular file, symbolic link or FIFO.
type Entry struct {
	Path   string     // relative to the root, with /; its true bytes, UTF-8 or not
	Mode   Mode       // type and permissions
	Size   int64      // length of the stored bytes; of regular files only
	Digest cas.Digest // of the stored bytes; of regular files only
	Target string     // of symbolic links only
	Secret string     // keyed digest of the true bytes where the stored ones are scrubbed; "" for none
	// Attrs are the extended attributes user.* of a file or directory: a JSON object in the order of their names, of values in
	// base64, and null for one that holds a secret. "" for none.
	Attrs string
	// MTime is when it was last written, in ns since the epoch; 0 for not known. It is no part of what compares: a build tool
	// that finds its outputs newer than its inputs where the run did not would do something else.
	MTime int64
}

// A NotCovered is a path that the snapshot left out, and with it everything below.
type NotCovered struct {
	Path   string
	Reason Reason
}

// A Reason says why a path is not covered.
type Reason string

// The reasons.
const (
	Ignored    Reason = "ignored"    // a rule of .gitignore or .git/info/exclude
	TooLarge   Reason = "too_large"  // a file over SnapOptions.MaxFileSize
	Special    Reason = "special"    // a socket or device
	Unreadable Reason = "unreadable" // no permission, or an error of the file system
	Excluded   Reason = "excluded"   // recordings, and SnapOptions.Exclude
	SecretName Reason = "secret"     // a secret stands in the name, or in the target of a link; Path is scrubbed
	TooMany    Reason = "too_many"   // below a directory that was renamed: more than a Journal keeps at once
	Linked     Reason = "linked"     // written through one of several hard links, which the run did not make: the others are not seen
)

func (r Reason) known() bool {
	switch r {
	case Ignored, TooLarge, Special, Unreadable, Excluded, SecretName, TooMany, Linked:
		return true
	}
	return false
}

// Lookup returns the entry of a path.
func (t *Tree) Lookup(path string) (*Entry, bool) {
	i, ok := slices.BinarySearchFunc(t.Entries, path, func(e Entry, p string) int { return cmp.Compare(e.Path, p) })
	if !ok {
		return nil, false
	}
	return &t.Entries[i], true
}

// Covers reports whether neither path nor a directory above it is listed in NotCovered.
func (t *Tree) Covers(path string) bool {
	for p := path; p != ""; p = parentOf(p) {
		_, hit := slices.BinarySearchFunc(t.NotCovered, p, func(n NotCovered, p string) int { return cmp.Compare(n.Path, p) })
		if hit {
			return false
		}
	}
	return true
}

// With returns t together with a partial tree of the same root: what t does not cover, as the run found it. Where both name a
// path, t counts. Neither is changed.
func (t *Tree) With(found *Tree) *Tree {
	out := &Tree{Root: t.Root, MTime: t.MTime, Partial: t.Partial, NotCovered: t.NotCovered, Entries: slices.Clone(t.Entries)}
	for _, e := range found.Entries {
		if _, ok := t.Lookup(e.Path); !ok {
			out.Entries = append(out.Entries, e)
		}
	}
	out.sort()
	for _, p := range append(slices.Clone(t.Absent), found.Absent...) {
		up, isThere := out.Lookup(parentOf(p))
		if _, ok := out.Lookup(p); !ok && (parentOf(p) == "" || isThere && up.Mode.IsDir()) {
			out.Absent = append(out.Absent, p)
		}
	}
	slices.Sort(out.Absent)
	out.Absent = slices.Compact(out.Absent)
	out.Moved = slices.Concat(t.Moved, found.Moved)
	slices.Sort(out.Moved)
	out.Moved = slices.Compact(out.Moved)
	return out
}

// isPlace reports whether e has no content: it is a directory or a FIFO.
func (e *Entry) isPlace() bool { return e.Mode.IsDir() || e.Mode.IsFIFO() }

// sort puts the lists of t into their order.
func (t *Tree) sort() {
	slices.SortFunc(t.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(t.Absent)
	slices.Sort(t.Moved)
	slices.SortFunc(t.NotCovered, func(a, b NotCovered) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	})
}

// sameContent reports whether a and b are the same file but for permissions. Two secret files are the same when the
// digests of their true bytes are.
func sameContent(a, b *Entry) bool {
	if a.Mode&TypeMask != b.Mode&TypeMask || a.Target != b.Target || a.Secret != b.Secret {
		return false
	}
	return a.Secret != "" || a.Digest == b.Digest && a.Size == b.Size
}

var (
	errOrder  = errors.New("out of order, or given twice")
	errParent = errors.New("its directory is not an entry before it")
	errAbsent = errors.New("it is an entry, too")
)

// Validate checks what every tree of this package holds: clean relative paths in ascending order, each one's directory an
// entry before it (so that no path leads through a link), a digest for each regular file and a target for each link and
// for nothing else. The error wraps ErrTree, and ErrPath where a path is the fault.
func (t *Tree) Validate() error {
	dirs := map[string]bool{"": true}
	last := ""
	for i := range t.Entries {
		e := &t.Entries[i]
		err := e.validate()
		switch {
		case err != nil:
		case e.Path <= last:
			err = errOrder
		case !dirs[parentOf(e.Path)]:
			err = errParent
		}
		if err != nil {
			return fmt.Errorf("files: entry %.80q: %w: %w", e.Path, ErrTree, err)
		}
		last = e.Path
		if e.Mode.IsDir() {
			dirs[e.Path] = true
		}
	}
	for i, p := range t.Absent {
		_, there := t.Lookup(p)
		err := follows(t.Absent, i)
		switch {
		case err != nil:
		case there:
			err = errAbsent
		case !dirs[parentOf(p)]:
			err = errParent
		}
		if err != nil {
			return fmt.Errorf("files: absent %.80q: %w: %w", p, ErrTree, err)
		}
	}
	for i, p := range t.Moved {
		if err := follows(t.Moved, i); err != nil {
			return fmt.Errorf("files: moved %.80q: %w: %w", p, ErrTree, err)
		}
	}
	paths := make([]string, len(t.NotCovered))
	for i, n := range t.NotCovered {
		paths[i] = n.Path
		if err := follows(paths, i); err != nil {
			return fmt.Errorf("files: not covered %.80q: %w: %w", n.Path, ErrTree, err)
		}
	}
	return nil
}

// follows checks a path of a list against the one before.
func follows(list []string, i int) error {
	if err := checkPath(list[i]); err != nil {
		return err
	}
	if i > 0 && list[i] <= list[i-1] {
		return errOrder
	}
	return nil
}

// validate checks one entry by itself.
func (e *Entry) validate() error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	file, link := e.Mode.IsRegular(), e.Mode.IsLink()
	switch {
	case !file && !link && !e.Mode.IsDir() && !e.Mode.IsFIFO():
		return fmt.Errorf("mode %s is not that of a directory, file, link or FIFO", e.Mode)
	case file == e.Digest.IsZero() || e.Size < 0 || !file && e.Size != 0:
		return errors.New("a digest and a size belong to each regular file and to nothing else")
	case link != (e.Target != "") || len(e.Target) > maxPathLen || strings.IndexByte(e.Target, 0) >= 0:
		return errors.New("a target belongs to each link and to nothing else")
	case e.Secret != "" && !file:
		return errors.New("only a regular file can be secret")
	case e.Attrs != "" && !file && !e.Mode.IsDir():
		return errors.New("xattrs belong to files and directories")
	}
	_, err := parseAttrs(e.Attrs)
	return err
}
