package mcp

import (
	"os"

	"golang.org/x/sys/unix"
)

// unread returns how many bytes that were written to f, a pipe or a Unix socket, nobody has read yet; 0 where that is not known. A
// socket counts what it needs to hold them too.
func unread(f *os.File) int {
	n := 0
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ); err != nil { // a pipe has one queue, and either end tells of it
			n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		}
	})
	return n
}
