package overlay

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// A copier writes the tree into a directory. It is used under tree.mu.
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

// A copied is a file or a directory as it was left in a directory, and what it is a copy of.
type copied struct {
	info  fs.FileInfo // in that directory
	mode  files.Mode
	mtime time.Time   // of a file, in the tree
	sum   cas.Digest  // of a file that the run wrote
	lower fs.FileInfo // of another; nil where that may have changed without another time
}

// settled is how long a file of the host must have been left alone for its times to tell of the next change: file systems stamp with a
// clock that ticks, some once in two seconds.
const settled = 2 * time.Second

func copiedOf(p *place, mtime time.Time, info fs.FileInfo) copied {
	c := copied{info: info, mode: p.mode, mtime: mtime}
	switch {
	case p.up != nil:
		c.sum = cas.Sum(p.up.data)
	case p.info != nil && time.Since(p.info.ModTime()) > settled:
		c.lower = p.info
	}
	return c
}

// sweep takes away what stands in a directory and is not in the tree, or is something else there. It returns what is left.
func (c *copier) sweep(dir string, all []entry) (stands map[string]bool, err error) {
	if c.was == nil {
		return nil, nil
	}
	found, err := files.ListDir(c.root, dir)
	if err != nil {
		return nil, err
	}
	types := make(map[string]files.Mode, len(all))
	for _, e := range all {
		types[e.name] = e.mode & files.TypeMask
	}
	stands = make(map[string]bool, len(found))
	for _, e := range found {
		mode, ok := files.ModeOf(e.Type())
		ok = ok && !mode.IsFIFO()
		if want, there := types[e.Name()]; ok && there && want == mode&files.TypeMask {
			stands[e.Name()] = true
			continue
		}
		if err := c.root.RemoveAll(filepath.FromSlash(join(dir, e.Name()))); err != nil {
			return nil, err
		}
	}
	return stands, nil
}

// still reports whether what stands at p in the directory is as an earlier copier left it, and p is what that copied; then it stays.
func (c *copier) still(p *place, name string) bool {
	if p.mode.IsLink() {
		target, err := c.root.Readlink(name)
		return err == nil && filepath.ToSlash(target) == p.target
	}
	was, known := c.was[p.path]
	info, err := c.root.Lstat(name)
	if !known || err != nil || was.mode != p.mode {
		return false
	}
	same := was.info.Mode() == info.Mode()
	if !p.mode.IsDir() {
		same = files.Unchanged(was.info, info) && was.of(p, c.f.infoOf(p.path, p).mtime)
	}
	if same {
		c.left[p.path] = was
	}
	return same
}

// of reports whether a file is a copy of what stands at p.
func (c *copied) of(p *place, mtime time.Time) bool {
	switch {
	case !c.mtime.Equal(mtime):
		return false
	case p.up != nil:
		return c.sum == cas.Sum(p.up.data)
	}
	return c.lower != nil && p.info != nil && files.Unchanged(c.lower, p.info)
}
