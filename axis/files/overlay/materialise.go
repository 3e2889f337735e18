package overlay

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// Materialise makes dir, which is empty or not there, a copy of the tree as it is: files, directories and links, every file with the
// time that Stat says. It is no input of the program, and is not recorded.
//
// Errors: dir holds something; those of the host; of a tree from a tape what that does not know.
func (f *FS) Materialise(dir string) error {
	root, err := emptyRoot(dir)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		_, err = f.copyInto(root, nil)
	}
	if err != nil {
		return fmt.Errorf("overlay: materialise: %w", err)
	}
	return nil
}

// Copy is Materialise for who finds out alone what changes in dir, and calls Apply. A directory that it filled before, in which something has
// worked since, becomes a copy of the tree as it is now: what stands there as Copy left it, and is the same in the tree, stays, and all
// else comes anew or goes. After an error a directory is not to be used again.
func (f *FS) Copy(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.copies, func(dir string, _ map[string]copied) bool {
		_, err := os.Lstat(dir)
		return err != nil
	})
	was := f.copies[dir]
	open := os.OpenRoot
	if was == nil {
		open = emptyRoot
	}
	delete(f.copies, dir)
	root, err := open(dir)
	var left map[string]copied
	if err == nil {
		left, err = f.copyInto(root, was)
	}
	if err != nil {
		return fmt.Errorf("overlay: copy: %w", err)
	}
	if f.copies == nil {
		f.copies = make(map[string]map[string]copied)
	}
	f.copies[dir] = left
	return nil
}

// copyInto fills a directory in which stands what was left there, and closes root. It is called under mu.
func (f *FS) copyInto(root *os.Root, was map[string]copied) (left map[string]copied, err error) {
	defer root.Close()
	c := copier{f: f, root: root, was: was, left: make(map[string]copied)}
	top := step{".", f.top, f.low != nil}
	return c.left, c.dir(top.place())
}

// emptyRoot makes a directory, or takes an empty one.
func emptyRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	all, err := files.ListDir(root, ".")
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%s: %w", dir, files.ErrNotEmpty)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// A copier writes the tree into a directory. It is used under FS.mu.
type copier struct {
	f    *FS
	root *os.Root
	was  map[string]copied // what an earlier one left; nil in an empty directory
	left map[string]copied // what this one does, by path
}

// dir copies what stands in the directory p.
func (c *copier) dir(p place) error {
	all, err := c.f.entries(&p)
	if err != nil {
		return err
	}
	stands, err := c.sweep(p.path, all)
	if err != nil {
		return err
	}
	in := step{p.path, p.up, p.below}
	for _, e := range all {
		kid, err := c.f.kid(&in, e.name, join(p.path, e.name), askOpen)
		if err == nil {
			err = c.one(kid, stands[e.name])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", join(p.path, e.name), err)
		}
	}
	return nil
}

// one copies what stands at p. stands says that something of its type stands there in the directory.
func (c *copier) one(p place, stands bool) error {
	name := filepath.FromSlash(p.path)
	if stands && c.still(&p, name) {
		if p.mode.IsDir() {
			return c.dir(p)
		}
		return nil
	}
	if stands {
		if err := c.root.RemoveAll(name); err != nil {
			return err
		}
	}
	switch {
	case p.mode == 0: // gone since it was listed
		return nil
	case p.mode.IsDir():
		if err := c.makeDir(&p, name); err != nil {
			return err
		}
		return c.dir(p)
	case p.mode.IsLink():
		return c.root.Symlink(filepath.FromSlash(p.target), name)
	}
	return c.file(&p, name)
}

func (c *copier) makeDir(p *place, name string) error {
	if err := c.root.Mkdir(name, 0o755); err != nil {
		return err
	}
	info, err := c.root.Lstat(name)
	c.left[p.path] = copied{info: info, mode: p.mode}
	return err
}

func (c *copier) file(p *place, name string) error {
	out, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = c.content(out, p)
	if err == nil {
		err = out.Chmod(p.mode.FileMode())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	when := c.f.infoOf(p.path, p).mtime
	if err := c.root.Chtimes(name, when, when); err != nil {
		return err
	}
	info, err := c.root.Lstat(name)
	c.left[p.path] = copiedOf(p, when, info)
	return err
}

// content copies a file, however long it is, without holding it.
func (c *copier) content(out io.Writer, p *place) error {
	if p.up != nil {
		_, err := out.Write(p.up.data)
		return err
	}
	d, ok := c.f.low.(*dirLower)
	if !ok {
		b, err := c.f.low.read(p.path, p.look)
		if err == nil {
			_, err = out.Write(b)
		}
		return err
	}
	in, _, err := files.OpenRegular(d.root, p.path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}
