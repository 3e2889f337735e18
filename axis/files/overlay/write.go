package overlay

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// WriteFile makes b the content of the file name, and the directories above it where they are missing. A new file is 0755 where
// perm lets its owner execute it, else 0644; one that is there keeps its permissions.
func (f *FS) WriteFile(name string, b []byte, perm fs.FileMode) error {
	now := f.now()
	c, err := f.beginChange("write", name)
	if err != nil {
		return err
	}
	var w written
	p, err := f.reach(name)
	if err == nil {
		w, err = f.store(&p, b, perm)
	}
	if err == nil {
		p.up.mtime = now
	}
	return c.end(&p, err, func() error { return f.noteWritten(p.links, w) })
}

// Symlink makes the symbolic link name, which leads to target: relative to the directory of name, as every link.
func (f *FS) Symlink(target, name string) error {
	if target == "" || len(target) > maxPathLen || strings.IndexByte(target, 0) >= 0 || !utf8.ValidString(target) {
		return failure("symlink", name, errTarget)
	}
	c, err := f.beginChange("symlink", name)
	if err != nil {
		return err
	}
	p, err := f.put(name, askChange, &node{mode: files.Link | 0o777, target: target})
	return c.end(&p, err, func() error {
		return f.noteWritten(p.links, written{path: p.path, mode: files.Link, data: []byte(target)})
	})
}

// put makes n stand at name, where nothing does. It is called under mu.
func (f *FS) put(name string, a ask, n *node) (place, error) {
	p, err := f.walk(name, a, false)
	if err == nil && p.mode != 0 {
		err = errThere
	}
	if err == nil {
		_, err = f.place(&p, n)
	}
	return p, err
}

// Chmod lets the owner of the file name execute it, or not, as perm says. Other permissions mean nothing here, and a directory has
// none.
func (f *FS) Chmod(name string, perm fs.FileMode) error {
	c, err := f.begin("chmod", name, &f.mu)
	if err != nil {
		return err
	}
	p, data, err := f.readAt(name)
	mode := modeOf(perm)
	differs := p.mode.IsRegular() && p.mode != mode
	if err == nil && differs {
		if err = f.lift(&p); err == nil {
			p.up.mode = mode
		}
	}
	if errors.Is(err, errIsDir) {
		err = nil
	}
	return c.end(&p, err, func() error {
		if !differs {
			return nil
		}
		return f.noteWritten(p.links, written{path: p.path, mode: mode, data: data, before: data})
	})
}

// modeOf is the mode of a new file.
func modeOf(perm fs.FileMode) files.Mode {
	if perm&0o100 != 0 {
		return files.Regular | 0o755
	}
	return files.Regular | 0o644
}

// reach goes to a path that is to be written, and makes the directories above it. It is called under mu.
func (f *FS) reach(name string) (place, error) {
	p, err := f.walk(name, askChange, true)
	if p.missing == "" {
		return p, err
	}
	links, whole := p.links, p.missing
	if _, err := f.ensure(path.Dir(whole)); err != nil {
		return p, err
	}
	p, err = f.walk(whole, askChange, true)
	p.links = append(links, p.links...)
	return p, err
}

// ensure makes the directory at dir, which has no links on its way, be in the upper layer, and those above it. Nothing else than
// directories stands on the way. It is called under mu.
func (f *FS) ensure(dir string) (*node, error) {
	at, cur := f.top, step{".", f.top, f.low != nil}
	if dir == "." {
		return at, nil
	}
	for i := 0; i < len(dir); {
		end := len(dir)
		if n := strings.IndexByte(dir[i:], '/'); n >= 0 {
			end = i + n
		}
		p, err := f.kid(&cur, dir[i:end], dir[:end], askWalk)
		if err != nil {
			return nil, err
		}
		if p.up == nil || p.mode == 0 {
			n := &node{mode: files.Dir | 0o755, opaque: p.mode == 0, mtime: f.began}
			if err := f.grow(nodeCost); err != nil {
				return nil, err
			}
			f.found(&p)
			f.release(at.put(dir[i:end], n))
			p.up, p.below = n, p.below && !n.opaque
		}
		at, cur = p.up, step{p.path, p.up, p.below}
		i = end + 1
	}
	return at, nil
}

// place makes n stand at p, in the place of what stands there, which it returns. It is called under mu.
func (f *FS) place(p *place, n *node) (was *node, err error) {
	dir, err := f.ensure(path.Dir(p.path))
	if err != nil {
		return nil, err
	}
	if err := f.grow(n.size()); err != nil {
		return nil, err
	}
	f.found(p)
	n.mtime = f.began
	was = dir.put(path.Base(p.path), n)
	f.release(was)
	p.up = n
	return was, nil
}

// found keeps what the lower layer has at a path that is changed for the first time. It is called under mu.
func (f *FS) found(p *place) {
	if _, ok := f.base[p.path]; !ok && p.up == nil {
		f.base[p.path] = p.look
	}
}

// release gives back what a node counted that stands nowhere any more, and all below it: at once, or when the last File of it is
// closed. It is called under mu.
func (f *FS) release(n *node) {
	if n == nil {
		return
	}
	n.dir = nil
	if n.opens == 0 {
		f.used -= n.size()
	}
	for _, kid := range n.kids {
		f.release(kid)
	}
}

// store makes b the content of p. It is called under mu.
func (f *FS) store(p *place, b []byte, perm fs.FileMode) (w written, err error) {
	if err := f.writable(p, int64(len(b))); err != nil {
		return w, err
	}
	w = written{path: p.path, mode: p.mode, data: b}
	if p.mode == 0 {
		w.mode = modeOf(perm)
	} else if f.rec != nil {
		if w.before, err = f.contentOf(p); err != nil {
			return w, err
		}
	}
	if p.up != nil && p.mode != 0 {
		if err := f.grow(int64(len(b) - len(p.up.data))); err != nil {
			return w, err
		}
		p.up.data = cloned(b)
		return w, nil
	}
	_, err = f.place(p, &node{mode: w.mode, data: cloned(b)})
	return w, err
}

// writable refuses what cannot become a file of n bytes.
func (f *FS) writable(p *place, n int64) error {
	switch {
	case p.mode.IsDir():
		return errIsDir
	case n > f.maxFile:
		return tooMuch(f.maxFile)
	case p.mode.IsRegular() && p.up == nil && p.size > f.maxFile:
		return p.bar(tooLong(f.maxFile))
	}
	return nil
}

// lift brings the file p, which the lower layer has, into the upper one. It is called under mu.
func (f *FS) lift(p *place) error {
	if p.up != nil {
		return nil
	}
	data, err := f.contentOf(p)
	if err != nil {
		return err
	}
	_, err = f.place(p, &node{mode: p.mode, data: data})
	return err
}
