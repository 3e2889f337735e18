// Package faultfs is the file system as the store sees it: the few calls that durable files are made of. OS is the real
// one. Hook stands between the store and another FS and lets a test fail, shorten or observe any call. Memory is a disk that
// forgets what was never synced when a test cuts its power, and, as real ones do, what a failed sync dropped.
//
// Names are paths of the operating system. The errors of OS are those of package os.
package faultfs

import (
	"io"
	"io/fs"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// An FS holds directories and files. All its methods may be called at the same time.
type FS interface {
	// OpenFile is os.OpenFile. Flags are those of os.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Rename is os.Rename. It is durable after SyncDir of the directory alone.
	Rename(from, to string) error
	Remove(name string) error
	MkdirAll(name string, perm fs.FileMode) error
	// ReadDir returns the entries sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir brings the names in a directory to the disk. Where the system has no such call it does nothing.
	SyncDir(name string) error
	// SyncAll brings every file below the directory name to the disk: by syncfs on Linux, elsewhere one after the other.
	SyncAll(name string) error
}

// A File is an open file. ReadAt and WriteAt may be called at the same time.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync brings the file's bytes to the disk, and of what is known about it the size: fdatasync on Linux, F_FULLFSYNC on
	// macOS (its fsync leaves the bytes in the drive's cache), FlushFileBuffers on Windows. After an error nobody knows which
	// bytes are on the disk, and a second call that succeeds says nothing about them.
	Sync() error
}

// OS is the file system of this machine.
var OS FS = system{}

type system struct{}

func (system) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // no File, rather than one that holds nil
	}
	return file{f}, nil
}

func (system) Rename(from, to string) error                 { return os.Rename(from, to) }
func (system) Remove(name string) error                     { return os.Remove(name) }
func (system) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }
func (system) ReadDir(name string) ([]fs.DirEntry, error)   { return os.ReadDir(name) }
func (system) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (system) SyncDir(name string) error                    { return durable.SyncDir(name) }
func (system) SyncAll(name string) error                    { return syncAll(name) }

type file struct{ *os.File }

func (f file) Sync() error { return datasync(f.File) }
