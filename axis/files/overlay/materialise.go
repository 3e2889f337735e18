package overlay

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// Copy makes dir, which is empty or not there, a copy of the tree as it is: files, directories and links, every file with the
// time that Stat says. A directory that it filled before, in which something has worked since, becomes a copy of the tree as it is now:
// what stands there as Copy left it, and is the same in the tree, stays, and all else comes anew or goes; who changed something there
// finds that out alone, and calls Apply. It is no input of the program, and is not recorded.
//
// Errors: dir holds something else; those of the host, after which it is not to be used again; of a tree from a tape what that does not know.
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
		open = files.OpenEmpty
	}
	delete(f.copies, dir)
	root, err := open(dir)
	if err != nil {
		return fmt.Errorf("overlay: copy: %w", err)
	}
	defer root.Close()
	c := copier{f: f, root: root, was: was, left: make(map[string]copied)}
	top := step{".", f.top, f.low != nil}
	if err := c.dir(top.place()); err != nil {
		return fmt.Errorf("overlay: copy: %w", err)
	}
	if f.copies == nil {
		f.copies = make(map[string]map[string]copied)
	}
	f.copies[dir] = c.left
	return nil
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
	in, err := c.content(p)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := files.Fill(c.root, p.path, in, p.mode.FileMode()); err != nil {
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

// content reads a file, however long it is, without holding it.
func (c *copier) content(p *place) (io.ReadCloser, error) {
	if d, ok := c.f.low.(*dirLower); ok && p.up == nil {
		in, _, err := files.OpenRegular(d.root, p.path)
		return in, err
	}
	b, err := c.f.contentOf(p)
	return io.NopCloser(bytes.NewReader(b)), err
}
