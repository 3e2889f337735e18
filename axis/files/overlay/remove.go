package overlay

import (
	"errors"
	"path"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

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

// drop makes nothing stand at p. Where the lower layer is seen around it that is kept for ever: what the lower layer has there now,
// or a tape says, is not what the program left. It is called under mu.
func (f *FS) drop(p *place) error {
	if p.up != nil && !p.over {
		delete(p.up.dir.kids, path.Base(p.path))
		f.release(p.up)
		return nil
	}
	was := *p // whose node place replaces
	_, err := f.place(&was, &node{})
	return err
}
