package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// Apply brings changes onto the directory root, or takes them back where reverse is set. First it looks whether each path
// stands as the change found it (reversed: as the change left it) and whether each content is in store; where one does
// not fit it returns a *ConflictError that lists every one, and nothing is written. Then each file is replaced whole. A
// secret file is such a conflict, by name. Changes in .git are passed over, as they are in a patch.
//
// What fits: the type, the content and the owner's x. A file that is to be new must not stand there; a directory may. A
// directory that is to go stays where it holds more than the changes know. A file whose permissions are not exactly
// those expected keeps them but for x.
//
// Nothing is read or written through a symbolic link. An error while writing leaves the files before it changed; each
// file is the old or the new one.
func Apply(root string, changes []Change, store cas.Store, reverse bool) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("files: apply: %w", err)
	}
	defer dir.Close()
	a := &applier{root: dir, store: store}
	for i := range changes {
		c := changes[i]
		if reverse {
			c = c.Reverse()
		}
		if !c.InGit() {
			a.changes = append(a.changes, c)
		}
	}
	slices.SortFunc(a.changes, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	if err := a.check(); err != nil {
		return err
	}
	if err := a.write(); err != nil {
		return fmt.Errorf("files: apply: %w", err)
	}
	return nil
}

type applier struct {
	root    *os.Root
	store   cas.Store
	changes []Change // sorted by path, in the direction to go
}

// write makes the changes: what goes first, the deepest before what holds it, then what comes, then the permissions of
// directories.
func (a *applier) write() error {
	for i := len(a.changes) - 1; i >= 0; i-- {
		if err := a.remove(&a.changes[i]); err != nil {
			return err
		}
	}
	var dirs []*Entry
	for i := range a.changes {
		c := &a.changes[i]
		if c.After == nil {
			continue
		}
		if err := a.put(c); err != nil {
			return err
		}
		if c.After.Mode.IsDir() {
			e := *c.After
			e.MTime = 0
			dirs = append(dirs, &e)
		}
	}
	return finishDirs(a.root, dirs)
}

// remove takes away what stands where nothing, or a thing of the other sort, is to stand. Files and links replace each
// other whole, so they stay until then.
func (a *applier) remove(c *Change) error {
	if c.Before == nil {
		return nil
	}
	if c.After != nil && c.Before.Mode.IsDir() == c.After.Mode.IsDir() {
		return nil
	}
	err := a.root.Remove(localName(c.Path))
	switch {
	case isGone(err):
		return nil
	case c.After == nil && c.Before.Mode.IsDir() && errors.Is(err, syscall.ENOTEMPTY):
		return nil
	}
	return err
}

// put makes what is to stand at c.Path.
func (a *applier) put(c *Change) error {
	if c.After.Mode.IsDir() {
		return a.root.MkdirAll(localName(c.Path), 0o755)
	}
	if p := parentOf(c.Path); p != "" {
		if err := a.root.MkdirAll(localName(p), 0o755); err != nil {
			return err
		}
	}
	perm := a.perm(c)
	if c.Before != nil && c.Before.Mode.IsRegular() && c.After.Mode.IsRegular() && sameContent(c.Before, c.After) {
		return errors.Join(a.root.Chmod(localName(c.Path), perm), setAttrs(a.root, c.Path, c.After.Attrs))
	}
	return replace(a.root, c.After, perm, a.store)
}

// perm returns the permissions of the file to come. One that replaces a file whose permissions are not those that the
// change knows keeps these, but for x, which it gets where it may be read.
func (a *applier) perm(c *Change) fs.FileMode {
	want := c.After.Mode.FileMode()
	info, err := a.root.Lstat(localName(c.Path))
	if err != nil || !info.Mode().IsRegular() || c.Before == nil || info.Mode().Perm() == c.Before.Mode.FileMode() {
		return want
	}
	perm := info.Mode().Perm() &^ 0o111
	if want&0o100 != 0 {
		perm |= (perm & 0o444) >> 2
	}
	return perm
}

// A ConflictError says which paths do not stand as changes expect them. Nothing was written.
type ConflictError struct {
	Conflicts []Conflict // sorted by path
	Done      bool       // every path stands as the changes leave it: they were made before
}

// A Conflict is one path that does not fit.
type Conflict struct {
	Path string
	Why  ConflictReason
	Want string // what was expected: "nothing", "100644 3f2a…", "link to x", "directory"
	Got  string // what stands there
}

// A ConflictReason says why a path does not fit.
type ConflictReason string

// The reasons of conflicts.
const (
	ConflictDiffers ConflictReason = "differs"      // something else stands there than expected
	ConflictSecret  ConflictReason = "secret"       // the true bytes of the file are not recorded
	ConflictLink    ConflictReason = "through_link" // a directory on the way is a symbolic link
	ConflictHolds   ConflictReason = "not_empty"    // a directory that must go holds a file that the changes do not know
	ConflictBlob    ConflictReason = "blob"         // the content to write is missing
	ConflictRead    ConflictReason = "unreadable"   // what stands there cannot be read
)

func (e *ConflictError) Error() string {
	var b strings.Builder
	if n := len(e.Conflicts); n == 1 {
		b.WriteString("1 path does not stand as expected")
	} else {
		fmt.Fprintf(&b, "%d paths do not stand as expected", n)
	}
	for _, c := range e.Conflicts {
		fmt.Fprintf(&b, "\n%s: %s: expected %s, found %s", c.Path, c.Why, c.Want, c.Got)
	}
	return b.String()
}

var errThroughLink = errors.New("a directory on the way is a symbolic link")

// check looks at every path and returns a *ConflictError where one does not fit.
func (a *applier) check() error {
	all := a.conflicts()
	if len(all) == 0 {
		return nil
	}
	return &ConflictError{Conflicts: all, Done: len(a.back().conflicts()) == 0}
}

func (a *applier) conflicts() []Conflict {
	var all []Conflict
	for i := range a.changes {
		if c, bad := a.checkOne(&a.changes[i]); bad {
			all = append(all, c)
		}
	}
	return all
}

// back takes back what a does.
func (a *applier) back() *applier {
	b := &applier{root: a.root, store: a.store}
	for i := range a.changes {
		b.changes = append(b.changes, a.changes[i].Reverse())
	}
	return b
}

// checkOne says what speaks against one change.
func (a *applier) checkOne(c *Change) (Conflict, bool) {
	out := Conflict{Path: c.Path, Want: describe(c.Before)}
	if err := c.validate(); err != nil {
		out.Why, out.Got = ConflictDiffers, err.Error()
		return out, true
	}
	if c.IsSecret() {
		out.Why, out.Got = ConflictSecret, "a placeholder for its secret bytes"
		return out, true
	}
	got, err := a.current(c.Path, c.Before)
	out.Got = describe(got)
	switch {
	case errors.Is(err, errThroughLink):
		out.Why, out.Got = ConflictLink, err.Error()
	case err != nil:
		out.Why, out.Got = ConflictRead, err.Error()
	case !fits(got, c):
		out.Why = ConflictDiffers
	default:
		out.Why, out.Got = a.hinders(c, got)
	}
	return out, out.Why != ""
}

// fits reports whether got is what c starts from.
func fits(got *Entry, c *Change) bool {
	want := c.Before
	switch {
	case want == nil:
		return got == nil || got.Mode.IsDir() && c.After != nil && c.After.Mode.IsDir()
	case got == nil:
		return want.Mode.IsDir() && c.After == nil // it was to go and is gone
	}
	return got.Mode.Git() == want.Mode.Git() && (want.Mode.IsDir() || sameContent(got, want))
}

// hinders says what else would make c fail half way: a missing content, or a file in a directory that must go.
func (a *applier) hinders(c *Change, got *Entry) (ConflictReason, string) {
	if c.After != nil && c.After.Mode.IsRegular() {
		if _, err := a.store.Size(c.After.Digest); err != nil {
			return ConflictBlob, err.Error()
		}
	}
	if c.After == nil || c.After.Mode.IsDir() || got == nil || !got.Mode.IsDir() {
		return "", ""
	}
	goes := make(map[string]bool)
	for i := range a.changes {
		goes[a.changes[i].Path] = a.changes[i].After == nil
	}
	stays, err := a.firstNotIn(goes, c.Path)
	switch {
	case err != nil:
		return ConflictRead, err.Error()
	case stays != "":
		return ConflictHolds, stays
	}
	return "", ""
}

// firstNotIn returns the first path below dir that is not in set, "" for none.
func (a *applier) firstNotIn(set map[string]bool, dir string) (string, error) {
	entries, err := ListDir(a.root, dir)
	for _, e := range entries {
		p := join(dir, e.Name())
		if !set[p] {
			return p, nil
		}
		if e.IsDir() {
			if stays, err := a.firstNotIn(set, p); stays != "" || err != nil {
				return stays, err
			}
		}
	}
	return "", err
}

// current returns what stands at path, nil for nothing. Its content is read only where want is of the same size.
func (a *applier) current(path string, want *Entry) (*Entry, error) {
	for i, c := range path {
		if c != '/' {
			continue
		}
		info, err := a.root.Lstat(localName(path[:i]))
		switch {
		case isGone(err):
			return nil, nil
		case err != nil:
			return nil, err
		case a.becomesDir(path[:i]):
			return nil, nil // what stands in the way goes, if it is what is expected there
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errThroughLink
		}
	}
	info, err := a.root.Lstat(localName(path))
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a.entry(path, info, want)
}

// becomesDir reports whether a directory takes the place of a file or link at path.
func (a *applier) becomesDir(path string) bool {
	i, ok := slices.BinarySearchFunc(a.changes, path, func(c Change, p string) int { return strings.Compare(c.Path, p) })
	if !ok {
		return false
	}
	c := &a.changes[i]
	return c.Before != nil && !c.Before.Mode.IsDir() && c.After != nil && c.After.Mode.IsDir()
}

func (a *applier) entry(path string, info fs.FileInfo, want *Entry) (*Entry, error) {
	mode, ok := ModeOf(info.Mode())
	if !ok {
		return nil, fmt.Errorf("files: %s: %w", path, errNotRegular)
	}
	e := &Entry{Path: path, Mode: mode}
	switch {
	case mode.IsLink():
		target, err := a.root.Readlink(localName(path))
		e.Target = filepath.ToSlash(target)
		return e, err
	case mode.IsRegular():
		e.Size = info.Size()
		if want == nil || want.Size != e.Size {
			return e, nil
		}
		var err error
		e.Digest, err = digestOf(a.root, path)
		return e, err
	}
	return e, nil
}

// describe says in words what an entry is.
func describe(e *Entry) string {
	switch {
	case e == nil:
		return "nothing"
	case e.Mode.IsDir():
		return "a directory"
	case e.Mode.IsLink():
		return "a link to " + e.Target
	case e.Mode.IsFIFO():
		return "a FIFO"
	case e.Digest.IsZero():
		return fmt.Sprintf("%s, %d bytes", e.Mode.Git(), e.Size)
	}
	return fmt.Sprintf("%s, %d bytes, %s", e.Mode.Git(), e.Size, e.Digest.Short())
}
