package overlay

import (
	"io/fs"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// Mkdir makes the directory name, of which the one above must be there. Permissions mean nothing: every directory is 0755.
func (f *FS) Mkdir(name string, _ fs.FileMode) error {
	if err := check("mkdir", name); err != nil {
		return err
	}
	f.mu.Lock()
	p, err := f.walk(name, askMake, false)
	found := p // before it was made
	if err == nil && p.mode != 0 {
		err = errThere
	}
	if err == nil {
		_, err = f.place(&p, &node{mode: files.Dir | 0o755, opaque: true})
	}
	f.mu.Unlock()
	return f.made("mkdir", name, &found, err)
}

// MkdirAll makes the directory name and those above it. One that is there is no error.
func (f *FS) MkdirAll(name string, _ fs.FileMode) error {
	if err := check("mkdir", name); err != nil {
		return err
	}
	f.mu.Lock()
	p, err := f.walk(name, askMake, true)
	found := p
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
	f.mu.Unlock()
	return f.made("mkdir", name, &found, err)
}

// made ends the making of a directory. That nothing stood there is an input as much as that something did.
func (f *FS) made(op, name string, found *place, err error) error {
	if err != nil {
		return f.failed(op, name, found, err)
	}
	if f.rec != nil {
		return f.noteStat(found)
	}
	return nil
}
