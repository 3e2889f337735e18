package overlay

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// A copier writes the tree into a directory. It is used under tree.mu.
type copier struct {
	f    *FS
	root *os.Root
	was  map[string]*copied // what an earlier one left; nil in an empty directory
	left map[string]*copied // what this one does, by path
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
		c.left[p.path] = &copied{mode: p.mode, target: p.target}
		return c.root.Symlink(filepath.FromSlash(p.target), name)
	}
	return c.file(&p, name)
}

func (c *copier) makeDir(p *place, name string) error {
	if err := c.root.Mkdir(name, 0o755); err != nil {
		return err
	}
	info, err := c.root.Lstat(name)
	c.left[p.path] = &copied{info: info, mode: p.mode}
	return err
}

func (c *copier) file(p *place, name string) error {
	in, err := c.content(p)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := cas.NewHasher()
	if _, err := files.Fill(c.root, p.path, io.TeeReader(in, sum), p.mode.FileMode()); err != nil {
		return err
	}
	when := c.f.infoOf(p.path, p).mtime
	if err := c.root.Chtimes(name, when, when); err != nil {
		return err
	}
	info, err := c.root.Lstat(name)
	now := time.Now()
	left := &copied{info: info, mode: p.mode, mtime: when, sum: sum.Sum(), first: now, read: now}
	if p.up == nil && p.info != nil && now.Sub(p.info.ModTime()) > settled {
		left.lower = p.info
	}
	c.left[p.path] = left
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

// A copied is what was left at a path of a directory, and what it is a copy of.
type copied struct {
	info   fs.FileInfo // in that directory; nil of a link
	mode   files.Mode
	target string      // of a link
	mtime  time.Time   // of a file, in the tree
	sum    cas.Digest  // of its content
	lower  fs.FileInfo // of one that the run did not write; nil where that may have changed without another time
	first  time.Time   // when info was taken
	read   time.Time   // when the content was known to be that of sum, the last time
}

// settled is how long a file of the host must have been left alone for its times to tell of the next change: file systems stamp with a
// clock that ticks, some once in two seconds.
const settled = 2 * time.Second

// ticked is the same of a file in a directory that Copy filled, which is ours.
const ticked = 100 * time.Millisecond

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
	was := c.was[p.path]
	if was == nil || was.mode != p.mode {
		return false
	}
	same := false
	if info, err := c.root.Lstat(name); err == nil {
		switch {
		case p.mode.IsLink():
			target, err := c.root.Readlink(name)
			same = err == nil && filepath.ToSlash(target) == p.target && p.target == was.target
		case p.mode.IsDir():
			same = was.info.Mode() == info.Mode()
		default:
			same = files.Unchanged(was.info, info) && was.of(p, c.f.infoOf(p.path, p).mtime)
		}
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

// maxChanged bounds, in bytes, what Changed returns: all of it stands in memory, and on a tape.
const maxChanged = 256 << 20

// A changer finds what is otherwise in a directory than it was left.
type changer struct {
	root  *os.Root
	left  map[string]*copied
	seen  map[string]bool
	holds map[string]bool // directories in which something stands
	all   []Change
	size  int64
}

func (c *changer) visit(name string, d fs.DirEntry, err error) error {
	if err != nil || name == "." {
		return err
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("the name %q is not UTF-8, which the files of a testbench cannot hold", name)
	}
	c.seen[name], c.holds[path.Dir(name)] = true, true
	was := c.left[name]
	if was == nil {
		was = &copied{}
	}
	switch sort := d.Type(); {
	case sort.IsDir():
		if !was.mode.IsDir() {
			c.all = append(c.all, Change{Path: name, Dir: true})
		}
	case sort&fs.ModeSymlink != 0:
		target, err := c.root.Readlink(name)
		if target = filepath.ToSlash(target); err != nil || was.mode.IsLink() && was.target == target {
			return err
		}
		c.all = append(c.all, Change{Path: name, Target: target})
	case sort.IsRegular():
		return c.file(name, was)
	default:
		return fmt.Errorf("%s is neither a file nor a directory or link (%s), which the files of a testbench cannot hold", name, sort)
	}
	return nil
}

func (c *changer) file(name string, was *copied) error {
	in, info, err := files.OpenRegular(c.root, name)
	if err != nil {
		return err
	}
	defer in.Close()
	mode := modeOf(info.Mode())
	untouched := was.mode == mode && files.Unchanged(was.info, info)
	if untouched && was.read.Sub(was.first) >= ticked {
		return nil
	}
	if was.mode == mode && info.Size() == was.info.Size() {
		now, sum := time.Now(), cas.NewHasher()
		if _, err := io.Copy(sum, in); err != nil {
			return err
		}
		if sum.Sum() == was.sum {
			if untouched {
				was.read = now
			}
			return nil
		}
	}
	if c.size += info.Size(); c.size > maxChanged {
		return fmt.Errorf("more than %d bytes of changed files", maxChanged)
	}
	content, err := c.root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	c.all = append(c.all, Change{Path: name, Content: content, Perm: mode.FileMode()})
	return nil
}
