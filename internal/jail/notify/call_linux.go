package notify

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Call is one call of a thread inside, which waits.
type Call struct {
	ID   uint64
	Task int // the thread, as the recorder's PID namespace knows it
	Nr   int32
	IP   uint64 // where the thread goes on
	Args [6]uint64

	from *Listener
}

// Waits reports whether the call still waits for its answer.
func (c *Call) Waits() bool {
	id := c.ID
	return c.from.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

// GoOn lets the kernel carry the call out.
func (c *Call) GoOn() { c.send(&response{Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}) }

// Fail makes the call return errno, or 0.
func (c *Call) Fail(errno unix.Errno) { c.send(&response{Error: -int32(errno)}) }

// Return makes the call return a number.
func (c *Call) Return(v int64) { c.send(&response{Val: v}) }

// response is the struct seccomp_notif_resp of linux/seccomp.h.
type response struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// send ignores errors: they mean that the caller died or that a signal took it out of the call.
func (c *Call) send(r *response) {
	r.ID = c.ID
	_ = c.from.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
}

// addFD is the struct seccomp_notif_addfd of linux/seccomp.h.
type addFD struct {
	ID       uint64
	Flags    uint32
	SrcFD    uint32
	NewFD    uint32
	NewFlags uint32
}

// AddFD makes fd stand at descriptor at of the caller, at -1 anywhere, with O_CLOEXEC in flags until execve only. It returns where.
func (c *Call) AddFD(fd, at, flags int) (int, error) {
	a := addFD{ID: c.ID, SrcFD: uint32(fd), NewFlags: uint32(flags)}
	if at >= 0 {
		a.Flags, a.NewFD = unix.SECCOMP_ADDFD_FLAG_SETFD, uint32(at)
	}
	return Ioctl(uintptr(c.from.fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
}

// ReturnFD makes the call return a descriptor that stands for fd; kernels before Linux 5.14 cannot. A signal to this thread meanwhile, as
// Go's scheduler sends them, would have it return 0 instead, without one.
func (c *Call) ReturnFD(fd, flags int) error {
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	var old unix.Sigset_t
	if unix.PthreadSigmask(unix.SIG_BLOCK, &all, &old) == nil {
		defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	}
	a := addFD{ID: c.ID, Flags: unix.SECCOMP_ADDFD_FLAG_SEND, SrcFD: uint32(fd), NewFlags: uint32(flags)}
	_, err := Ioctl(uintptr(c.from.fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
	return err
}

// Ioctl makes an ioctl, which may return a number.
func Ioctl(fd uintptr, req uint, arg unsafe.Pointer) (int, error) {
	for {
		v, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uintptr(req), uintptr(arg))
		switch errno {
		case 0:
			return int(v), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
