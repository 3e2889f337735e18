package wasi

import (
	"errors"
	"io"
	"io/fs"

	esys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

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
