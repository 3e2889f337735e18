package overlay

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// ReadFile returns the content of the file name. It implements fs.ReadFileFS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	c, err := f.begin("open", name, f.looking())
	if err != nil {
		return nil, err
	}
	p, b, err := f.readAt(name)
	return b, c.end(&p, err, func() error { return cmp.Or(f.noteLinks(p.links), f.noteRead(p.path, b, p.mode)) })
}

// Stat says what stands at name, behind a link. It implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

// Lstat is Stat of a link itself. It implements fs.ReadLinkFS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	c, err := f.begin(op, name, f.looking())
	if err != nil {
		return nil, err
	}
	p, err := f.walk(name, askStat, follow)
	if err == nil && p.mode == 0 {
		err = errNone
	}
	i := f.infoOf(name, &p)
	if err := c.end(&p, err, func() error { return f.noteStat(&p) }); err != nil {
		return nil, err
	}
	return i, nil
}

// Exists reports whether a file or directory stands at name. The error is that of Stat, but for what is not there.
func (f *FS) Exists(name string) (bool, error) {
	_, err := f.stat("stat", name, true)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// ReadLink returns the target of the symbolic link name. It implements fs.ReadLinkFS.
func (f *FS) ReadLink(name string) (string, error) {
	c, err := f.begin("readlink", name, f.looking())
	if err != nil {
		return "", err
	}
	p, err := f.walk(name, askStat, false)
	switch {
	case err == nil && p.mode == 0:
		err = errNone
	case err == nil && !p.mode.IsLink():
		err = errNoLink
	}
	return p.target, c.end(&p, err, func() error { return f.noteLinks(append(p.links, link{p.path, p.target})) })
}

// ReadDir returns what stands in the directory name, sorted. It implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, all, err := f.list("open", name)
	if err != nil {
		return nil, err
	}
	return f.dirEntries(dir, all), nil
}

// List returns the names in the directory name, sorted.
func (f *FS) List(name string) ([]string, error) {
	_, all, err := f.list("open", name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names, nil
}

func (f *FS) list(op, name string) (dir string, all []entry, err error) {
	c, err := f.begin(op, name, f.looking())
	if err != nil {
		return "", nil, err
	}
	p, all, err := f.listAt(name)
	return p.path, all, c.end(&p, err, func() error { return f.noteList(&p, all) })
}

// An info is what Stat says.
type info struct {
	name  string
	mode  files.Mode
	size  int64
	mtime time.Time
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) Mode() fs.FileMode  { return fileMode(i.mode) }
func (i *info) ModTime() time.Time { return i.mtime }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return nil }

// fileMode is m as package io/fs has it.
func fileMode(m files.Mode) fs.FileMode {
	switch {
	case m.IsDir():
		return fs.ModeDir | 0o755
	case m.IsLink():
		return fs.ModeSymlink | 0o777
	}
	return fs.FileMode(m & 0o777)
}

// A dirEntry is one name in a directory.
type dirEntry struct {
	f    *FS
	path string
	entry
}

func (d *dirEntry) Name() string      { return d.name }
func (d *dirEntry) IsDir() bool       { return d.mode.IsDir() }
func (d *dirEntry) Type() fs.FileMode { return fileMode(d.mode).Type() }

func (f *FS) dirEntries(dir string, all []entry) []fs.DirEntry {
	out := make([]fs.DirEntry, len(all))
	for i, e := range all {
		out[i] = &dirEntry{f, join(dir, e.name), e}
	}
	return out
}

// Info is a look of its own, which is recorded.
func (d *dirEntry) Info() (fs.FileInfo, error) { return d.f.Lstat(d.path) }
func (d *dirEntry) String() string             { return fs.FormatDirEntry(d) }

// Open opens name for reading. It implements fs.FS.
func (f *FS) Open(name string) (fs.File, error) {
	h, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err // no File that is nil
	}
	return h, nil
}
