package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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

// Mkdir makes the directory name, of which the one above must be there. Permissions mean nothing: every directory is 0755.
func (f *FS) Mkdir(name string, _ fs.FileMode) error {
	c, err := f.begin("mkdir", name, &f.mu)
	if err != nil {
		return err
	}
	p, err := f.put(name, askMake, &node{mode: files.Dir | 0o755, opaque: true})
	return c.end(&p, err, func() error { return f.noteStat(&p) }) // that nothing stood there is an input too
}

// MkdirAll makes the directory name and those above it. One that is there is no error.
func (f *FS) MkdirAll(name string, _ fs.FileMode) error {
	c, err := f.begin("mkdir", name, &f.mu)
	if err != nil {
		return err
	}
	p, err := f.walk(name, askMake, true)
	switch {
	case p.missing != "":
		_, err = f.ensure(p.missing)
	case err == nil && p.mode == 0 && p.linked:
		err = errThere // a link that leads nowhere
	case err == nil && p.mode == 0:
		_, err = f.ensure(p.path)
	case err == nil && !p.mode.IsDir():
		err = errNoDir
	}
	return c.end(&p, err, func() error { return f.noteStat(&p) })
}

// Remove takes away the file, the link or the empty directory name.
func (f *FS) Remove(name string) error { return f.remove("remove", name, 0) }

// Unlink is Remove of what is no directory.
func (f *FS) Unlink(name string) error { return f.remove("unlink", name, files.Regular) }

// Rmdir is Remove of a directory.
func (f *FS) Rmdir(name string) error { return f.remove("rmdir", name, files.Dir) }

// remove is Remove of one sort of thing, 0 being any.
func (f *FS) remove(op, name string, sort files.Mode) error {
	c, err := f.beginChange(op, name)
	if err != nil {
		return err
	}
	p, before, names, err := f.removeAt(name, sort)
	if names == nil {
		return c.end(&p, err, func() error {
			return f.noteWritten(p.links, written{path: p.path, was: p.mode, before: before})
		})
	}
	// The directory was listed, whether it was empty or not.
	if e := c.end(&p, nil, func() error { return f.noteList(&p, names) }); e != nil || err == nil {
		return e
	}
	return failure(op, name, err)
}

// removeAt takes away what stands at name, and returns its content, or the names in it. It is called under mu.
func (f *FS) removeAt(name string, sort files.Mode) (p place, before []byte, names []entry, err error) {
	p, err = f.walk(name, askRemove, false)
	switch {
	case err != nil:
		return p, nil, nil, err
	case p.mode == 0:
		return p, nil, nil, errNone
	case sort == files.Dir && !p.mode.IsDir():
		return p, nil, nil, errNoDir
	case sort == files.Regular && p.mode.IsDir():
		return p, nil, nil, errIsDir
	}
	if p.mode.IsDir() {
		if names, err = f.entries(&p); err != nil {
			return p, nil, nil, err
		}
		if names == nil {
			names = []entry{}
		}
		if len(names) > 0 {
			return p, nil, names, errNotEmpty
		}
	} else if f.rec != nil {
		var untold *UnknownError
		before, err = f.contentOf(&p)
		if errors.As(err, &untold) { // what stood there goes unread: a tape need not hold it
			before, err = nil, nil
		}
		if err != nil {
			return p, nil, nil, err
		}
	}
	return p, before, names, f.drop(&p)
}

// A Change is what became of one path by something else than the program.
type Change struct {
	Path    string
	Deleted bool        // the file, the link or the whole directory
	Dir     bool        // it is a directory now
	Target  string      // of a symbolic link, else ""
	Content []byte      // of a file
	Perm    fs.FileMode // 0o644 or 0o755, of a file
}

// Apply makes changes true that the process with that number made, and records them, which name it: what is gone first, then what is
// there, each in the order of the paths. What is gone already is none; what comes takes the place of whatever stands there.
func (f *FS) Apply(spawn uint64, changes []Change) error {
	all := slices.Clone(changes)
	slices.SortStableFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	for _, deleted := range []bool{true, false} {
		for i := range all {
			if all[i].Deleted != deleted {
				continue
			}
			if err := f.apply(spawn, &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *FS) apply(spawn uint64, c *Change) error {
	if err := check("apply", c.Path); err != nil {
		return err
	}
	if c.Path == "." {
		return failure("apply", c.Path, errTop)
	}
	now := f.now()
	f.mu.Lock()
	var done []written
	err := f.clear(c, &done)
	if err == nil && !c.Deleted {
		err = f.bring(c, &done)
	}
	if p, e := f.walk(c.Path, askChange, false); e == nil && p.up != nil {
		p.up.mtime = now
	}
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("overlay: %s, which process %d changed: %w", c.Path, spawn, err)
	}
	if f.rec == nil {
		return nil
	}
	for i := range done {
		done[i].spawn = spawn
	}
	return f.noteWritten(nil, done...)
}

// Create is OpenFile of a file that is new, or becomes empty, for reading and writing.
func (f *FS) Create(name string) (*File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
}

// OpenFile opens name as os.OpenFile does. The flags are os.O_RDONLY, O_WRONLY, O_RDWR, O_APPEND, O_CREATE, O_EXCL and O_TRUNC,
// others mean nothing. A file that was created or cut is so for all at once.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (*File, error) {
	h := &File{f: f, name: name, flag: flag}
	now := f.now()
	c, err := f.begin("open", name, &f.mu)
	if err != nil {
		return nil, err
	}
	p, err := f.open(h, perm)
	if h.n != nil {
		h.n.opens++
		if h.dirty {
			h.n.mtime = now
		}
	}
	// What nothing later will say: the links that were passed, and that a file was made. What is asked of that before its file_write
	// says nothing of what stood there.
	err = c.end(&p, err, func() error {
		if p.mode == 0 {
			return f.noteStat(&p)
		}
		return f.noteLinks(p.links)
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// open finds or makes what h is to be. It is called under mu.
func (f *FS) open(h *File, perm fs.FileMode) (place, error) {
	a, follow := askOpen, true
	if h.flag&os.O_CREATE != 0 {
		a, follow = askChange, h.flag&os.O_EXCL == 0
	}
	p, err := f.walk(h.name, a, follow)
	if err != nil {
		return p, err
	}
	h.at, h.n = p, p.up
	h.at.links = nil // recorded by now
	switch {
	case p.mode == 0 && h.flag&os.O_CREATE == 0:
		err = errNone
	case p.mode == 0:
		err = f.create(h, perm)
	case h.flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		err = errThere
	case p.mode.IsDir():
		if h.mayWrite() || h.flag&os.O_CREATE != 0 {
			err = errIsDir
		}
	case h.flag&os.O_TRUNC != 0 && h.mayWrite():
		err = f.cut(h)
	}
	if err != nil {
		h.n = nil
	}
	return p, err
}

// create makes the file of h. It is called under mu.
func (f *FS) create(h *File, perm fs.FileMode) error {
	err := f.place(&h.at, &node{mode: modeOf(perm)})
	h.n = h.at.up
	h.at.look = look{mode: modeOf(perm)}
	if err == nil {
		h.pend()
	}
	return err
}

// cut makes the file of h empty. It is called under mu.
func (f *FS) cut(h *File) error {
	if err := f.writable(&h.at, 0); err != nil {
		return err
	}
	if err := h.keep(); err != nil {
		return err
	}
	if h.n == nil {
		if err := f.place(&h.at, &node{mode: h.at.mode}); err != nil {
			return err
		}
		h.n = h.at.up
	}
	f.used -= int64(len(h.n.data))
	h.n.data = nil
	h.pend()
	return nil
}

// Rename gives what stands at from the name to, in the place of a file, a link or an empty directory there. The directory above to
// must be there. A directory moves with all that lies below, which is read for it.
func (f *FS) Rename(from, to string) error {
	for _, name := range []string{from, to} {
		if err := check("rename", name); err != nil {
			return err
		}
		if name == "." {
			return failure("rename", name, errTop)
		}
	}
	m := mover{f: f}
	f.mu.Lock()
	err := m.run(from, to)
	f.mu.Unlock()
	if err != nil {
		return m.failed(err)
	}
	switch {
	case f.rec == nil:
		return nil
	case m.to.path == m.was.path:
		return f.noteStat(&m.was)
	}
	return m.note()
}
