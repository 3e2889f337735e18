package overlay

import (
	"io/fs"
	"os"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// Open opens name for reading. It implements fs.FS.
func (f *FS) Open(name string) (fs.File, error) {
	h, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err // no File that is nil
	}
	return h, nil
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

const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func (h *File) mayWrite() bool { return h.flag&accessMode != os.O_RDONLY }

func (h *File) mayRead() bool { return h.flag&accessMode != os.O_WRONLY }

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
	_, err := f.place(&h.at, &node{mode: modeOf(perm)})
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
		if _, err := f.place(&h.at, &node{mode: h.at.mode}); err != nil {
			return err
		}
		h.n = h.at.up
	}
	f.used -= int64(len(h.n.data))
	h.n.data = nil
	h.pend()
	return nil
}

// keep keeps what the file holds before its first change through h. It is called under mu.
func (h *File) keep() (err error) {
	if h.dirty || h.f.rec == nil {
		return nil
	}
	if h.n != nil && h.n.pending != nil {
		h.f.flush(h.n.pending)
	}
	p := h.at
	if p.up = h.n; p.up == nil {
		if p, err = h.f.walk(h.at.path, askChange, false); err != nil {
			return err
		}
	}
	h.before, err = h.f.contentOf(&p)
	return err
}

// pend says that the file was changed through h. It is called under mu.
func (h *File) pend() {
	h.dirty, h.changed, h.n.pending = true, true, h
}

// own brings the file of h into the upper layer. It is called under mu.
func (h *File) own() error {
	if h.n != nil {
		return nil
	}
	p, err := h.f.walk(h.at.path, askChange, false)
	switch {
	case err != nil:
		return err
	case p.mode == 0: // removed meanwhile: nobody else sees it
		h.n = &node{mode: files.Regular | 0o644, data: h.snap, opens: 1}
		return h.f.grow(h.n.size())
	}
	if err := h.f.lift(&p); err != nil {
		return err
	}
	h.n = p.up
	h.n.opens++
	return nil
}
