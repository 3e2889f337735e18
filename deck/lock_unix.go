//go:build unix

package deck

import (
	"os"
	"syscall"
)

// lockFile opens path, makes it where it is not there, and locks it. The error is that of a lock that another process holds,
// too.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
