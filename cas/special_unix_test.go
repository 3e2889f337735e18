//go:build unix

package cas_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// makeSpecial makes a FIFO, a socket or a device.
func makeSpecial(path, what string) error {
	switch what {
	case "fifo":
		return syscall.Mkfifo(path, 0o600)
	case "socket":
		return makeSocket(path)
	case "zero-device":
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
			return errors.Join(errCannotMake, err)
		}
		return nil
	}
	return fmt.Errorf("%w: %s", errCannotMake, what)
}

// makeSocket makes a socket by way of a short path: that of a blob is longer than a socket's may be.
func makeSocket(path string) error {
	dir, err := os.MkdirTemp("", "cas")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	short := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return errors.Join(os.Rename(short, path), l.Close())
}
