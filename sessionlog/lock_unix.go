//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package sessionlog

import (
	"errors"
	"os"
	"syscall"
)

// A fileLock keeps other writers out of a log. It is the kernel's, on the log itself, and goes with the process.
type fileLock struct{ f *os.File }

func newFileLock(f *os.File) *fileLock { return &fileLock{f} }

func (l *fileLock) lock() error   { return l.flock(syscall.LOCK_EX) }
func (l *fileLock) unlock() error { return l.flock(syscall.LOCK_UN) }
func (l *fileLock) close() error  { return nil }

func (l *fileLock) flock(how int) error {
	for {
		err := syscall.Flock(int(l.f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
