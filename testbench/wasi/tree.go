package wasi

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	esys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
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

// file is a file or a directory that is open, with its own place in it.
type file struct {
	esys.UnimplementedFile
	t    *tree
	name string
	f    *overlay.File // nil of the tree itself, which needs no look
	at   int64
	add  bool // every write goes to the end
	done bool // closed

	info    fs.FileInfo // what was seen last, which holds until anything changes: languages ask twice and thrice
	changes int         // of the tree, when that was

	list   []esys.Dirent // of a directory: what was not given yet
	listed bool
}

func (f *file) Dev() (uint64, esys.Errno)       { return 1, 0 }
func (f *file) Ino() (sys.Inode, esys.Errno)    { return inode(f.name), 0 }
func (f *file) Sync() esys.Errno                { return 0 } // there is no disk
func (f *file) Datasync() esys.Errno            { return 0 }
func (f *file) Utimens(int64, int64) esys.Errno { return esys.ENOTSUP }
func (f *file) IsAppend() bool                  { return f.add }

func (f *file) SetAppend(enable bool) esys.Errno {
	f.add = enable
	return 0
}

func (f *file) IsDir() (bool, esys.Errno) {
	s, errno := f.Stat()
	return s.Mode.IsDir(), errno
}

func (f *file) Stat() (sys.Stat_t, esys.Errno) {
	if f.f == nil {
		return f.t.top(), 0
	}
	if f.info == nil || f.changes != f.t.changes {
		info, err := f.f.Stat()
		if err != nil {
			return sys.Stat_t{}, f.t.r.errno(err)
		}
		f.info, f.changes = info, f.t.changes
	}
	return statOf(f.name, f.info), 0
}

func (f *file) Pread(b []byte, at int64) (int, esys.Errno) {
	if f.f == nil {
		return 0, esys.EISDIR
	}
	n, err := f.f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, f.t.r.errno(err)
}

func (f *file) Read(b []byte) (int, esys.Errno) {
	n, errno := f.Pread(b, f.at)
	f.at += int64(n)
	return n, errno
}

func (f *file) Pwrite(b []byte, at int64) (int, esys.Errno) {
	if f.f == nil {
		return 0, esys.EISDIR
	}
	n, err := f.f.WriteAt(b, at)
	return n, f.t.changed(err)
}

func (f *file) Write(b []byte) (int, esys.Errno) {
	if f.add {
		if _, errno := f.Seek(0, io.SeekEnd); errno != 0 {
			return 0, errno
		}
	}
	n, errno := f.Pwrite(b, f.at)
	f.at += int64(n)
	return n, errno
}

func (f *file) Truncate(size int64) esys.Errno {
	if f.f == nil {
		return esys.EISDIR
	}
	return f.t.changed(f.f.Truncate(size))
}

// position is an int64: go vet would have any Seek of an int64 be io.Seeker's.
type position = int64

func (f *file) Seek(to position, whence int) (position, esys.Errno) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		to += f.at
	case io.SeekEnd:
		s, errno := f.Stat()
		if errno != 0 {
			return 0, errno
		}
		to += s.Size
	default:
		return 0, esys.EINVAL
	}
	if to < 0 {
		return 0, esys.EINVAL
	}
	f.at = to
	f.list, f.listed = nil, false
	return to, 0
}

// Readdir gives the next n names, all where n is negative. A directory is listed when it is first asked for them.
func (f *file) Readdir(n int) ([]esys.Dirent, esys.Errno) {
	if !f.listed {
		if errno := f.look(); errno != 0 {
			return nil, errno
		}
	}
	if n < 0 || n > len(f.list) {
		n = len(f.list)
	}
	some := f.list[:n:n]
	f.list = f.list[n:]
	return some, 0
}

func (f *file) look() esys.Errno {
	entries, err := f.entries()
	if err != nil {
		return f.t.r.errno(err)
	}
	f.t.r.happened()
	f.listed = true
	for _, e := range entries {
		f.list = append(f.list, esys.Dirent{Name: e.Name(), Type: e.Type(), Ino: inode(inTree(f.name + "/" + e.Name()))})
	}
	return 0
}

func (f *file) entries() ([]fs.DirEntry, error) {
	if f.f == nil {
		return f.t.f.ReadDir(".")
	}
	if _, err := f.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return f.f.ReadDir(-1)
}

// Close is where what the module wrote is recorded. It may come when the module has ended, so that it ends none: what fails is the
// run's.
func (f *file) Close() esys.Errno {
	if f.done {
		return esys.EBADF
	}
	f.done = true
	f.t.r.open--
	if f.f == nil {
		return 0
	}
	if err := f.f.Close(); err != nil {
		if f.t.r.failed == nil {
			f.t.r.failed = err
		}
		return esys.EIO
	}
	return 0
}

// random is the module's source of random bytes.
type random struct{ r *run }

func (s random) Read(p []byte) (int, error) {
	s.r.happened()
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.r.b.Random().Read(p)
	if err != nil {
		s.r.abort(err)
	}
	return n, nil
}

// printer is where the module prints to. Nil discards.
type printer struct {
	r *run
	w io.Writer
}

func (p printer) Write(b []byte) (int, error) {
	if p.r.printed += int64(len(b)); p.r.printed > p.r.o.Output {
		p.r.abort(&LimitError{Limit: "output", What: fmt.Sprintf("the module printed more than %d bytes; Options.Output allows it more", p.r.o.Output)})
	}
	if p.w == nil {
		return len(b), nil
	}
	return p.w.Write(b)
}

// maxStdin is how much standard input there may be.
const maxStdin = 64 << 20

// stdin is the module's standard input.
type stdin struct{ r *run }

func (s stdin) Read(p []byte) (int, error) {
	s.r.happened()
	s.r.once.Do(s.r.readStdin)
	n := copy(p, s.r.stdin)
	s.r.stdin = s.r.stdin[n:]
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *run) readStdin() {
	b, err := r.b.Input("/dev/stdin", r.allOfStdin)
	if r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	if err != nil {
		r.abort(fmt.Errorf("standard input: %w", err))
	}
	r.stdin = b
}

// allOfStdin reads standard input to its end. It may never come: then the run's limit ends the wait, and what reads is left behind until
// its reader returns.
func (r *run) allOfStdin() ([]byte, error) {
	if r.o.Stdin == nil {
		return nil, nil
	}
	type whole struct {
		b   []byte
		err error
	}
	done := make(chan whole, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(r.o.Stdin, maxStdin+1))
		done <- whole{b, err}
	}()
	select {
	case all := <-done:
		if all.err == nil && len(all.b) > maxStdin {
			all.err = fmt.Errorf("want at most %d MiB", maxStdin>>20)
		}
		return all.b, all.err
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}
