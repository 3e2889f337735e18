package wasi

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	esys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// maxOpen is how many files and directories a module may hold open.
const maxOpen = 1024

// tree is the bench's files as a module sees them.
type tree struct {
	esys.UnimplementedFS
	r       *run
	f       *overlay.FS
	changes int // of anything in it by the module
}

// changed counts a change of the tree, and says what the module is told of it.
func (t *tree) changed(err error) esys.Errno {
	t.changes++
	return t.r.errno(err)
}

// inTree is a path as package overlay has it. The engine has seen to it that none leads upwards; it hands on what stands below an
// open directory with a slash too many, and one at the end where the module wrote it.
func inTree(name string) string {
	if name = path.Clean(strings.TrimLeft(name, "/")); name == "" {
		return "."
	}
	return name
}

// errno is what a module is told of err. What no file can fail with, a tape that holds nothing of a path above all, ends the module.
func (r *run) errno(err error) esys.Errno {
	r.happened()
	if err == nil {
		return 0
	}
	for _, known := range errnos {
		if errors.Is(err, known.is) {
			return known.errno
		}
	}
	r.abort(err)
	return esys.EIO
}

// errnos are those that package overlay has. WASI has no more than wazero knows: a full tree is EIO, for want of ENOSPC and EFBIG.
var errnos = []struct {
	is    error
	errno esys.Errno
}{
	{syscall.ENOENT, esys.ENOENT}, {syscall.ENOTDIR, esys.ENOTDIR}, {syscall.EISDIR, esys.EISDIR}, {syscall.ENOTEMPTY, esys.ENOTEMPTY},
	{syscall.EEXIST, esys.EEXIST}, {syscall.ELOOP, esys.ELOOP}, {syscall.EACCES, esys.EACCES}, {syscall.EINVAL, esys.EINVAL},
	{syscall.ENAMETOOLONG, esys.ENAMETOOLONG}, {syscall.EBADF, esys.EBADF}, {syscall.ENOSPC, esys.EIO}, {syscall.EFBIG, esys.EIO},
}

// OpenFile opens a file or a directory.
func (t *tree) OpenFile(name string, flag esys.Oflag, perm fs.FileMode) (esys.File, esys.Errno) {
	if t.r.open >= maxOpen {
		return nil, esys.EBADF // what wazero says of a full table
	}
	f := &file{t: t, name: inTree(name), add: flag&esys.O_APPEND != 0}
	if f.name != "." {
		how := flagsOf(flag)
		must := strings.HasSuffix(name, "/") || flag&esys.O_DIRECTORY != 0
		if must {
			how = os.O_RDONLY
		}
		var err error
		if f.f, err = t.f.OpenFile(f.name, how, perm); err != nil {
			return nil, t.r.errno(err)
		}
		if errno := f.fits(must); errno != 0 {
			_ = f.f.Close() // it was only looked at
			return nil, errno
		}
		if how&(os.O_TRUNC|os.O_CREATE) != 0 {
			t.changes++
		}
	}
	t.r.happened()
	t.r.open++
	return f, 0
}

// fits refuses a file where the module wants a directory.
func (f *file) fits(must bool) esys.Errno {
	if !must {
		return 0
	}
	if is, errno := f.IsDir(); errno != 0 || is {
		return errno
	}
	return esys.ENOTDIR
}

// flagsOf are a module's flags as package os has them.
func flagsOf(flag esys.Oflag) int {
	out := os.O_RDONLY
	for _, pair := range []struct {
		of esys.Oflag
		is int
	}{{esys.O_RDWR, os.O_RDWR}, {esys.O_WRONLY, os.O_WRONLY}, {esys.O_CREAT, os.O_CREATE}, {esys.O_EXCL, os.O_EXCL}, {esys.O_TRUNC, os.O_TRUNC}} {
		if flag&pair.of != 0 {
			out |= pair.is
		}
	}
	return out
}

// Lstat implements experimental/sys.FS.
func (t *tree) Lstat(name string) (sys.Stat_t, esys.Errno) { return t.stat(name, t.f.Lstat) }

// Stat implements experimental/sys.FS.
func (t *tree) Stat(name string) (sys.Stat_t, esys.Errno) { return t.stat(name, t.f.Stat) }

func (t *tree) stat(name string, look func(string) (fs.FileInfo, error)) (sys.Stat_t, esys.Errno) {
	must := strings.HasSuffix(name, "/")
	name = inTree(name)
	if name == "." {
		return t.top(), 0
	}
	info, err := look(name)
	if err != nil {
		return sys.Stat_t{}, t.r.errno(err)
	}
	if t.r.happened(); must && !info.IsDir() {
		return sys.Stat_t{}, esys.ENOTDIR
	}
	return statOf(name, info), 0
}

// top is what the tree itself is, which needs no look.
func (t *tree) top() sys.Stat_t {
	return statFor(".", fs.ModeDir|0o755, 0, t.r.b.Clock().Start().UnixNano())
}

func statOf(name string, info fs.FileInfo) sys.Stat_t {
	return statFor(name, info.Mode(), info.Size(), info.ModTime().UnixNano())
}

func statFor(name string, mode fs.FileMode, size, mtime int64) sys.Stat_t {
	return sys.Stat_t{Dev: 1, Ino: inode(name), Mode: mode, Nlink: 1, Size: size, Atim: mtime, Mtim: mtime, Ctim: mtime}
}

// inode is a number for a path, never 0: C's library looks at every file of which a list has none.
func inode(name string) sys.Inode {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // which never fails
	return h.Sum64() | 1
}

// Mkdir implements experimental/sys.FS, as the methods below.
func (t *tree) Mkdir(name string, perm fs.FileMode) esys.Errno {
	return t.changed(t.f.Mkdir(inTree(name), perm))
}

func (t *tree) Rename(from, to string) esys.Errno {
	return t.changed(t.f.Rename(inTree(from), inTree(to)))
}

func (t *tree) Rmdir(name string) esys.Errno { return t.changed(t.f.Rmdir(inTree(name))) }

func (t *tree) Unlink(name string) esys.Errno { return t.changed(t.f.Unlink(inTree(name))) }

func (t *tree) Symlink(target, name string) esys.Errno {
	return t.changed(t.f.Symlink(strings.Clone(target), inTree(name))) // target is a view of the module's memory
}

func (t *tree) Readlink(name string) (string, esys.Errno) {
	target, err := t.f.ReadLink(inTree(name))
	return target, t.r.errno(err)
}

func (t *tree) Utimens(string, int64, int64) esys.Errno { return esys.ENOTSUP }
