package overlay

import (
	"io/fs"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

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
