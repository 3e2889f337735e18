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
