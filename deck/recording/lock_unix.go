//go:build unix

package recording

import (
	"errors"
	"os"
	"syscall"
)

// LockExclusive opens and locks a directory for whoever writes to it, lockShared for a moment's look. The error wraps
// errHeld where another has it, errNoLocks where there are no locks.
func LockExclusive(dir string) (*os.File, error) { return lockOpen(dir, syscall.LOCK_EX) }
func lockShared(dir string) (*os.File, error)    { return lockOpen(dir, syscall.LOCK_SH) }

// Unlock gives up a lock and closes its file; nil is none. Closing alone is not enough: a process that was being started meanwhile has
// the file too, until it runs its program.
func Unlock(f *os.File) {
	if f != nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		f.Close()
	}
}

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
		err = ErrHeld
	default:
		err = ErrNoLocks
	}
	f.Close()
	return nil, err
}

// LinkedInode returns what identifies the inode of a file that has several names; ok is false where it has one.
func LinkedInode(info os.FileInfo) (id Inode, ok bool) {
	st, is := info.Sys().(*syscall.Stat_t)
	if !is || st.Nlink < 2 {
		return Inode{}, false
	}
	return Inode{uint64(st.Dev), st.Ino}, true //nolint:unconvert // Dev is another type on macOS
}
