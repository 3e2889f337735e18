package inspect

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// IsTerminal reports whether a descriptor is a terminal's.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// SocketPath returns the path in a struct sockaddr_un; an address of another family, or an abstract one, has none.
func SocketPath(addr []byte) (string, bool) {
	const family = 2 // bytes
	if len(addr) <= family || len(addr) > unix.SizeofSockaddrUnix || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[family] == 0 {
		return "", false
	}
	return unix.ByteSliceToString(addr[family:]), true
}

// Flags of pidfd_open, from linux/pidfd.h.
const (
	PidfdNonblock = unix.O_NONBLOCK
	PidfdThread   = unix.O_EXCL
)

// LinkOf reads what a descriptor of a thread stands for, by its name in proc.
func LinkOf(proc int, thread string, fd int) (string, error) {
	link, err := ReadLink(proc, thread+"/fd/"+strconv.Itoa(fd))
	if !errors.Is(err, unix.EACCES) {
		return link, err
	}
	err = WithTask(thread, func(task int) error {
		link, _, err = Lent(task, fd)
		return err
	})
	return link, err
}

// WithTask opens a thread.
func WithTask(thread string, use func(task int) error) error {
	tid, err := strconv.Atoi(thread)
	if err != nil {
		return err
	}
	task, err := unix.PidfdOpen(tid, PidfdThread)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.9 only the first thread of a process can be opened
		task, err = unix.PidfdOpen(tid, 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(task)
	return use(task)
}

// Lent takes a descriptor, and says what it stands for and how it is open: S_IRUSR, S_IWUSR. The error is ENOENT where none
// stands.
func Lent(task, fd int) (link string, mode uint32, err error) {
	taken, err := unix.PidfdGetfd(task, fd, 0)
	if errors.Is(err, unix.EBADF) {
		return "", 0, unix.ENOENT
	}
	if err != nil {
		return "", 0, err
	}
	defer unix.Close(taken)
	flags, err := unix.FcntlInt(uintptr(taken), unix.F_GETFL, 0)
	if err != nil {
		return "", 0, err
	}
	link, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(taken))
	return link, openFor(flags), err
}

// openFor spells the flags of an open as the mode of a link in /proc/PID/fd.
func openFor(flags int) uint32 {
	switch flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		return unix.S_IRUSR
	case unix.O_WRONLY:
		return unix.S_IWUSR
	}
	return unix.S_IRUSR | unix.S_IWUSR
}
