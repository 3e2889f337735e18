//go:build !linux

package faultfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// datasync is F_FULLFSYNC on macOS, where package os does that, and FlushFileBuffers on Windows.
func datasync(f *os.File) error { return f.Sync() }

func syncAll(name string) error {
	return filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
