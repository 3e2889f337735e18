package library

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNew renames a file or a directory, and fails with an error that wraps fs.ErrExist where the new name is taken.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system's answer, the kernel's
		return renameChecked(from, to)
	}
	return err
}

// exchange swaps the names of two directories of one file system. Where the file system cannot do that at once, to is gone for a moment.
func exchange(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return exchangeByTurns(from, to)
	}
	return err
}
