package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
