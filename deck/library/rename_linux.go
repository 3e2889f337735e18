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
