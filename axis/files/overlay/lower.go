package overlay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An ask says what somebody wants of a path. A tape answers some by turns; a directory does not care.
type ask uint8

const (
	askWalk   ask = iota // to go on below it
	askRead              // its content
	askOpen              // its content, perhaps, later
	askStat              // what it is
	askList              // the names in it
	askChange            // to write there
	askRemove            // to take away what stands there
	askMake              // to make a directory there
)

// A look is what stands at a path.
type look struct {
	mode   files.Mode   // 0: nothing
	size   int64        // of a file
	target string       // of a link
	barred *reason      // why what stands there is not let through; mode is 0 then
	info   fs.FileInfo  // of a directory's file, as it was then
	from   *tape.Record // of a tape: the record that says so; nil where none does
}

// An entry is one name in a directory. Of its mode the type counts.
type entry struct {
	name string
	mode files.Mode
}

// A lower is what a tree begins as. Its paths hold no links but in the last place. Any number of goroutines may use it.
type lower interface {
	// look says what stands at path. The error is an *UnknownError, of a tape.
	look(path string, a ask) (look, error)
	// read returns the content of a file that look found.
	read(path string, l look) ([]byte, error)
	// list returns what stands in a directory that look found, in any order.
	list(path string, l look) ([]entry, error)
	close() error
}

// A dirLower is a directory of the host.
type dirLower struct {
	root  *os.Root
	limit int64 // of a file, in bytes
	folds bool  // the host's names may not tell letter case apart

	mu   sync.RWMutex
	dirs map[string]bool // paths at which a directory stood; guarded by mu
}

func openDir(dir string, limit int64) (*dirLower, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("overlay: open the directory of the tree: %w", err)
	}
	folds := runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	return &dirLower{root: root, limit: limit, folds: folds, dirs: make(map[string]bool)}, nil
}

func (d *dirLower) close() error { return d.root.Close() }

// look implements lower. A directory that was one is not looked at again on the way: os.Root holds whatever became of it inside.
func (d *dirLower) look(name string, a ask) (look, error) {
	if a == askWalk && d.isDir(name) {
		return look{mode: files.Dir | 0o755}, nil
	}
	info, err := d.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return look{}, nil
		}
		return look{barred: refused(err)}, nil
	}
	l := d.lookOf(name, info)
	if l.mode != 0 && d.folds && !d.spelled(name) {
		return look{}, nil
	}
	if l.mode.IsDir() {
		d.mu.Lock()
		d.dirs[name] = true
		d.mu.Unlock()
	}
	return l, nil
}

func (d *dirLower) isDir(name string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.dirs[name]
}

// refused is what a path is at which the host would not look, without the path of the host in it.
func refused(err error) *reason {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &reason{errno: syscall.EACCES, text: "the host refuses: " + err.Error()}
}

func (d *dirLower) lookOf(name string, info fs.FileInfo) look {
	l := look{info: info}
	switch info.Mode().Type() {
	case 0:
		l.size, l.mode = info.Size(), files.Regular|0o644
		if info.Mode()&0o100 != 0 {
			l.mode = files.Regular | 0o755
		}
	case fs.ModeDir:
		l.mode = files.Dir | 0o755
	case fs.ModeSymlink:
		target, err := d.root.Readlink(filepath.FromSlash(name))
		if err != nil || !utf8.ValidString(target) {
			return look{barred: &reason{errno: syscall.EACCES, text: "a symbolic link whose target cannot be read as UTF-8"}}
		}
		if l.mode, l.target = files.Link|0o777, filepath.ToSlash(target); filepath.IsAbs(target) && target[0] != '/' {
			l.target = "/" + l.target // of Windows: it leads out all the same
		}
	default:
		return look{barred: &reason{errno: syscall.EACCES, text: "it is " + regular.Kind(info.Mode()) + ", which is never opened"}}
	}
	return l
}

// spelled reports whether a name stands in its directory letter by letter.
func (d *dirLower) spelled(name string) bool {
	all, err := files.ListDir(d.root, path.Dir(name))
	if err != nil {
		return false
	}
	base := path.Base(name)
	for _, e := range all {
		if e.Name() == base {
			return true
		}
	}
	return false
}

// read implements lower.
func (d *dirLower) read(name string, l look) ([]byte, error) {
	if l.size > d.limit {
		return nil, tooLong(d.limit)
	}
	b, err := files.ReadRegular(d.root, name, d.limit)
	if err != nil {
		return nil, refused(err)
	}
	return b, nil
}

func tooLong(limit int64) *reason {
	return &reason{errno: syscall.EFBIG, text: fmt.Sprintf("the file is over the limit of %d bytes: raise Options.MaxFile", limit)}
}

func tooMuch(limit int64) *reason {
	return &reason{errno: syscall.EFBIG, text: fmt.Sprintf("the file would be over the limit of %d bytes: raise Options.MaxFile", limit), own: true}
}

// list implements lower. What cannot be asked for is not listed.
func (d *dirLower) list(name string, _ look) ([]entry, error) {
	all, err := files.ListDir(d.root, name)
	if err != nil {
		return nil, refused(err)
	}
	var out []entry
	for _, e := range all {
		mode, ok := files.ModeOf(e.Type())
		ok = ok && !mode.IsFIFO()
		if ok && checkName(e.Name()) == nil {
			out = append(out, entry{e.Name(), mode & files.TypeMask})
		}
	}
	return out, nil
}

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
