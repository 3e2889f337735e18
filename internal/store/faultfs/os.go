package faultfs

import (
	"io/fs"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

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

func (f file) Sync() error               { return datasync(f.File) }
func (f file) Allocate(size int64) error { return allocate(f.File, size) }
