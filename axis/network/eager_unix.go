//go:build unix

package network

import "syscall"

// canReadNow says that a socket can be asked what has come.
const canReadNow = true

// readFD is one read of a socket that does not block.
func (e *eager) readFD(fd uintptr) bool {
	e.got, e.err = syscall.Read(int(fd), e.buf)
	return true
}
