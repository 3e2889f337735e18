//go:build unix && !solaris && !aix

package door

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listenUnix listens on a socket that only this user can reach. Until its mode is set, a moment after it is there, the umask
// decides who can; whoever that lets in has the wrong credentials. The directory is locked meanwhile: of two daemons that
// find the same stale socket, one replaces it and the other finds that somebody answers.
func listenUnix(path string) (net.Listener, fileID, error) {
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, fileID{}, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, fileID{}, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fileID{}, err
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(path, 0o600)
	info, statErr := os.Lstat(path)
	if err = cmp.Or(err, statErr); err != nil {
		_ = l.Close()
		return nil, fileID{}, err
	}
	return l, fileID{info}, nil
}

// lockDir locks a directory until unlock is called, or this process dies.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// removeStale makes way at path: there is nothing, or a socket on which nobody answers.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("a file that is no socket stands there: choose another path or remove it")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = c.Close()
		return errors.New("another daemon listens there: stop it or choose another path")
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("what stands there does not say whether somebody listens: %w", err)
}

// transient reports whether accepting may work again later.
func transient(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// allowed says whether a user may come in.
func allowed(uid int) error {
	if uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("%w: uid %d, want %d", errForeign, uid, os.Geteuid())
	}
	return nil
}
