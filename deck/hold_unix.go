//go:build unix

package deck

import (
	"errors"
	"os"
	"syscall"
)

// lockExclusive opens and locks a directory for whoever writes to it, lockShared for a moment's look. The error wraps
// errHeld where another has it, errNoLocks where there are no locks.
func lockExclusive(dir string) (*os.File, error) { return lockOpen(dir, syscall.LOCK_EX) }
func lockShared(dir string) (*os.File, error)    { return lockOpen(dir, syscall.LOCK_SH) }

func lockOpen(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errHeld
	default:
		err = errNoLocks
	}
	f.Close()
	return nil, err
}

// linked returns what identifies the inode of a file that has several names; ok is false where it has one.
func linked(info os.FileInfo) (id inode, ok bool) {
	st, is := info.Sys().(*syscall.Stat_t)
	if !is || st.Nlink < 2 {
		return inode{}, false
	}
	return inode{uint64(st.Dev), st.Ino}, true //nolint:unconvert // Dev is another type on macOS
}
