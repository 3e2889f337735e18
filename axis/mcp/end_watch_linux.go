package mcp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// gone waits until nobody reads what is written to e any more, and reports true, or until e is closed. Only pipes, and sockets of one
// direction, can be waited for: of a socket that is read too the reader sees the end.
func (e *end) gone() (gone bool) {
	if !e.file.watching || e.file.both { // to wait keeps others from reading
		return false
	}
	conn, err := e.file.f.SyscallConn()
	if err != nil {
		return false
	}
	// Of the end of a pipe that is written to nothing but an error makes the poller say that it can be read.
	_ = conn.Read(func(fd uintptr) bool {
		gone = hungUp(int32(fd))
		return gone
	})
	return gone
}

// hungUp reports whether the far end is gone. That of a nil end is not.
func (e *end) hungUp() (gone bool) {
	if e == nil {
		return false
	}
	if conn, err := e.file.f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { gone = hungUp(int32(fd)) })
	}
	return gone
}

// hungUp reports whether the far end of a descriptor is gone.
func hungUp(fd int32) bool {
	set := []unix.PollFd{{Fd: fd}}
	for {
		if _, err := unix.Poll(set, 0); !errors.Is(err, unix.EINTR) {
			return err == nil && set[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	}
}
