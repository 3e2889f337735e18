package cas

import (
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// An unnamed file gets its first name when it is whole. To make a temporary name and change it is a third of what a short blob costs,
// and it stays behind where the writer is killed.
type unnamed struct {
	*os.File
	dir string
}

// createUnnamed begins such a file in dir. Some file systems have none.
func createUnnamed(dir string) (blobFile, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil {
		return nil, err
	}
	return &unnamed{f, dir}, nil
}

// Commit implements blobFile.
func (f *unnamed) Commit(path string) error {
	if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err == nil {
		return f.Close()
	}
	defer f.Close()
	named, err := durable.Create(f.dir, nil) // something stands there, or there is no /proc
	if err != nil {
		return err
	}
	if _, err := io.Copy(named, io.NewSectionReader(f, 0, math.MaxInt64)); err != nil {
		named.Discard()
		return err
	}
	return named.Commit(path)
}

// Discard implements blobFile.
func (f *unnamed) Discard() { f.Close() }
