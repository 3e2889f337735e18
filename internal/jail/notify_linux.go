package jail

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// struct seccomp_notif and struct seccomp_notif_resp of linux/seccomp.h; their sizes are part of the ioctl numbers.
type (
	seccompNotif struct {
		ID    uint64
		PID   uint32
		Flags uint32
		Nr    int32
		Arch  uint32
		IP    uint64
		Args  [6]uint64
	}
	seccompResp struct {
		ID    uint64
		Val   int64
		Error int32
		Flags uint32
	}
)

// A notifier answers the notified calls of a jail, each with a refusal.
type notifier struct {
	file   *os.File // in the runtime's poller, so that Close ends a read
	done   chan struct{}
	report func(Refusal)
}

// newNotifier takes over fd and starts the goroutine that answers; close ends it and waits for it. It also ends when no
// process with the filter is left.
func newNotifier(fd int, report func(Refusal)) (*notifier, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	n := &notifier{file: os.NewFile(uintptr(fd), "seccomp"), done: make(chan struct{}), report: report}
	go n.serve()
	return n, nil
}

func (n *notifier) close() {
	n.file.Close()
	<-n.done
}

func (n *notifier) serve() {
	defer close(n.done)
	conn, err := n.file.SyscallConn()
	if err != nil {
		return
	}
	for {
		over := false
		// The descriptor is ready for every call that waits; a false answer waits for the next.
		err := conn.Read(func(fd uintptr) bool {
			for {
				ready, hup := pollIn(int(fd))
				if !ready {
					over = hup
					return hup
				}
				n.answer(fd)
			}
		})
		if err != nil || over {
			return
		}
	}
}

// pollIn asks without waiting, for receiving a notification blocks whatever the descriptor's flags say.
func pollIn(fd int) (ready, hup bool) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return fds[0].Revents&unix.POLLIN != 0, fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

// answer receives one notification and refuses its call. Errors mean that the caller is gone.
func (n *notifier) answer(fd uintptr) {
	var req seccompNotif
	if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&req)) != nil {
		return
	}
	family, kind := int(int32(req.Args[0])), int(int32(req.Args[1]))&0xf
	errno := unix.EAFNOSUPPORT
	if family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_PACKET {
		errno = unix.EPERM
	}
	// Reported before it is answered: the trial before the program's start must not be counted as the program's.
	proto := socketName(family, kind, int(int32(req.Args[2])))
	n.report(Refusal{Proto: proto, Reason: proto + " socket: only TCP, UDP and Unix sockets exist inside"})
	resp := seccompResp{ID: req.ID, Error: -int32(errno)}
	// An error means that the caller died while it waited.
	_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&resp))
}

func ioctl(fd uintptr, req uint, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uintptr(req), uintptr(arg))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

var familyNames = map[int]string{
	unix.AF_INET: "inet", unix.AF_INET6: "inet6", unix.AF_PACKET: "packet", unix.AF_VSOCK: "vsock",
	unix.AF_BLUETOOTH: "bluetooth", unix.AF_ALG: "alg", unix.AF_CAN: "can", unix.AF_TIPC: "tipc", unix.AF_XDP: "xdp",
	unix.AF_RDS: "rds", unix.AF_SMC: "smc", unix.AF_NFC: "nfc", unix.AF_KCM: "kcm", unix.AF_QIPCRTR: "qrtr",
}

var typeNames = map[int]string{
	unix.SOCK_STREAM: "stream", unix.SOCK_DGRAM: "dgram", unix.SOCK_RAW: "raw", unix.SOCK_RDM: "rdm",
	unix.SOCK_SEQPACKET: "seqpacket", unix.SOCK_DCCP: "dccp",
}

// socketName spells a socket: "vsock stream", "inet raw", "inet dgram protocol 1".
func socketName(family, kind, protocol int) string {
	f, ok := familyNames[family]
	if !ok {
		f = fmt.Sprintf("family %d", family)
	}
	t, ok := typeNames[kind]
	if !ok {
		t = fmt.Sprintf("type %d", kind)
	}
	if (family == unix.AF_INET || family == unix.AF_INET6) && kind != unix.SOCK_RAW {
		return fmt.Sprintf("%s %s protocol %d", f, t, protocol)
	}
	return f + " " + t
}
