//go:build unix

package seal

import (
	"os"
	"syscall"
)

// openNoFollow opens a file for reading. It refuses a symlink, and does not wait for the other end of a FIFO; the caller
// checks what it got.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// openNoWait opens a file for reading, or a pipe that somebody writes to: one that nobody does is empty, and not waited for.
func openNoWait(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
