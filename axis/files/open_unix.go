//go:build unix

package files

import "syscall"

// openFlags opens a file for reading without following a link in its last place and without waiting for the writer of a
// FIFO that took a file's place.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
