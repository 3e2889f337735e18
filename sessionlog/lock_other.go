//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package sessionlog

import (
	"os"

	"github.com/gofrs/flock"
)

// A fileLock keeps other writers out of a log. It is on a file beside it: here a lock keeps others from reading too.
type fileLock struct{ f *flock.Flock }

func newFileLock(f *os.File) *fileLock {
	return &fileLock{flock.New(f.Name()+".lock", flock.SetPermissions(0o600))}
}

func (l *fileLock) lock() error   { return l.f.Lock() }
func (l *fileLock) unlock() error { return l.f.Unlock() }
func (l *fileLock) close() error  { return l.f.Close() }
