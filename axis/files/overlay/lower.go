package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
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
	b, _, err := files.ReadRegular(d.root, name, d.limit)
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
