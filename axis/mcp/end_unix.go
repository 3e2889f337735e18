//go:build unix

package mcp

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newEndFile returns a file that is read and written as f is, and closes f. A read of it ends when it is closed, which takes a descriptor
// that does not block; but whether one blocks belongs to everybody who has the same open file. So a pipe is opened anew, where that
// can be done. What is neither pipe nor socket is used as it is. No descriptor is that of stdout or stderr: Go ends a
// process that writes there when nobody reads any more.
func newEndFile(f *os.File) (*endFile, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	pollable := f.SetDeadline(time.Time{}) == nil
	var own *os.File
	errControl := conn.Control(func(fd uintptr) {
		if flags, errFlags := unix.FcntlInt(fd, unix.F_GETFL, 0); errFlags == nil && flags&unix.O_NONBLOCK == 0 {
			pollable = false // File.Fd was asked, say: a read would not end with its file then
		}
		if err = unix.Fstat(int(fd), &st); err == nil && (!pollable || fd <= 2) {
			own, err = ownFile(int(fd), uint32(st.Mode), f.Name()) //nolint:unconvert // elsewhere it has 16 bits
		}
	})
	if errControl != nil || err != nil {
		return nil, fmt.Errorf("mcp: a file of a relay: %w", cmp.Or(errControl, err))
	}
	kind := st.Mode & unix.S_IFMT
	file := &endFile{f: f, socket: kind == unix.S_IFSOCK, watching: kind == unix.S_IFSOCK || kind == unix.S_IFIFO}
	file.id = [2]uint64{uint64(st.Dev), st.Ino} //nolint:unconvert // elsewhere it is a smaller one
	if own != nil {
		f.Close()
		file.f = own
	}
	return file, nil
}

// ownFile returns a file of the descriptor fd, which stays open.
func ownFile(fd int, mode uint32, name string) (*os.File, error) {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		if again, err := reopened(fd); err == nil {
			return os.NewFile(uintptr(again), name), nil
		}
	case unix.S_IFSOCK:
	default:
		return duplicate(fd, name)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return duplicate(fd, name)
}

func duplicate(fd int, name string) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(own), name), nil
}

// reopened opens the pipe of a descriptor anew, without blocking.
func reopened(fd int) (int, error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return -1, err
	}
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), flags&unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// shut ends one direction of a socket.
func (f *endFile) shut(reads bool) {
	how := unix.SHUT_WR
	if reads {
		how = unix.SHUT_RD
	}
	if conn, err := f.f.SyscallConn(); err == nil && f.socket {
		_ = conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) }) // its peer may be gone
	}
}
