package faultfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	return interruptible("fdatasync", f, unix.Fdatasync)
}

func syncAll(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return interruptible("syncfs", f, unix.Syncfs)
}

// interruptible makes a call again that a signal interrupted, as package os does; Go's own signals arrive at any moment.
func interruptible(name string, f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return &os.PathError{Op: name, Path: f.Name(), Err: err}
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for failed = call(int(fd)); errors.Is(failed, unix.EINTR); {
			failed = call(int(fd))
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return &os.PathError{Op: name, Path: f.Name(), Err: err}
	}
	return nil
}
