package overlay

import (
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
)

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
