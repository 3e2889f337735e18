package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
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

// A notifier answers the notified calls of a jail: refused ones with an error, connects by making them, and those that change
// files by letting them go on once the watch, if there is one, has told of them.
type notifier struct {
	fd        int // the listener
	stop      int // an eventfd: written to, it ends serve
	done      chan struct{}
	report    func(Refusal)
	connector *connector
	watch     *watch     // nil: no such calls are notified
	spawns    *spawns    // likewise
	inputs    *inputs    // likewise
	follows   *following // what the thread that receives is to follow now
	receivers *receivers
	connects  sync.WaitGroup
	copies    sync.WaitGroup
	copying   chan struct{}   // a token each
	held      sync.WaitGroup  // processes whose end is held up
	letGo     context.Context // done when none is any more
	release   context.CancelFunc
}

// maxCopies is how many functions that a Watcher returned run at once. Beyond that all calls wait.
const maxCopies = 64

// newNotifier takes over what it is given and starts the goroutine that answers; close ends it and waits for it. It also ends
// when no process with the filter is left.
func newNotifier(fd int, report func(Refusal), c *connector, w *watch, s *spawns, in *inputs) (*notifier, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	// Caller and answerer take turns, so that one processor serves both best. Before Linux 6.6 they find out themselves.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	n := &notifier{fd: fd, stop: stop, done: make(chan struct{}), report: report, connector: c, watch: w, spawns: s, inputs: in, receivers: newReceivers(), copying: make(chan struct{}, maxCopies)}
	n.letGo, n.release = context.WithCancel(context.Background())
	n.next()
	return n, nil
}

// close waits for what a Watcher's functions still copy, and ends connects. It is called once.
func (n *notifier) close() {
	one := [8]byte{1}
	unix.Write(n.stop, one[:])
	<-n.done
	n.release()
	n.held.Wait()
	n.copies.Wait()
	unix.Close(n.stop)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		n.connects.Wait()
		n.receivers.running.Wait()
		n.connector.close()
		unix.Close(n.fd)
	}()
	n.connector.abandon(gone)
}

// serve receives notifications until there is an execve to follow, which it returns. nil means that all is over.
func (n *notifier) serve() *following {
	fds := []unix.PollFd{{Fd: int32(n.fd), Events: unix.POLLIN}, {Fd: int32(n.stop), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[1].Revents != 0:
			return nil
		case fds[0].Revents&unix.POLLIN != 0:
			n.receive()
			if f := n.follows; f != nil {
				n.follows = nil
				return f
			}
		case fds[0].Revents != 0: // POLLHUP: nobody is left
			return nil
		}
	}
}

// receive takes one notification, which does not block once the descriptor was ready. Errors mean that the caller is
// gone.
func (n *notifier) receive() {
	var req seccompNotif
	if n.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&req)) != nil {
		return
	}
	if path, flags, ok := readOpen(&req); ok && n.inputs != nil {
		n.open(&req, path, flags)
		return
	}
	if n.inputs != nil {
		if req.Nr == unix.SYS_BIND && n.bind(&req) {
			return
		}
		n.nameAnew(&req)
	}
	switch {
	case req.Nr == unix.SYS_SOCKET:
		n.refuse(&req)
	case req.Nr == unix.SYS_SOCKETPAIR:
		n.pair(&req)
	case req.Nr == unix.SYS_CONNECT:
		n.connect(&req)
	case req.Nr == unix.SYS_EXECVE || req.Nr == unix.SYS_EXECVEAT:
		n.spawn(&req)
	case n.inputs != nil && req.Nr == unix.SYS_EXIT_GROUP:
		n.exit(&req)
	case n.inputs != nil && isInput(req.Nr):
		n.input(&req)
	case n.watch == nil:
		n.goOn(req.ID)
	case !n.watch.armed.Load():
		n.answer(req.ID, n.watch.try(&req))
	default:
		n.look(&req)
	}
}

func (n *notifier) refuse(req *seccompNotif) {
	family, kind := int(int32(req.Args[0])), int(int32(req.Args[1]))&0xf
	errno := unix.EAFNOSUPPORT
	if family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_PACKET {
		errno = unix.EPERM
	}
	// Reported before it is answered: the trial before the program's start must not be counted as the program's.
	proto := socketName(family, kind, int(int32(req.Args[2])))
	n.report(Refusal{Proto: proto, Reason: proto + " socket: only TCP, UDP and Unix sockets exist inside"})
	n.answer(req.ID, errno)
}

// look tells the watcher what the call is about to change. That holds only if the caller still waits: its PID may be
// another's otherwise.
func (n *notifier) look(req *seccompNotif) {
	call, err := n.watch.look(req)
	switch {
	case errors.Is(err, inspect.ErrOlder):
		n.answer(req.ID, unix.EACCES)
		return
	case err != nil:
		n.answer(req.ID, unix.EIO)
		return
	case call == nil:
		n.goOn(req.ID)
		return
	case !n.waits(req.ID):
		call.close()
		return
	}
	then, err := n.watch.watcher.Changing(call)
	if then == nil || err != nil {
		n.finish(req.ID, call, err)
		return
	}
	n.copying <- struct{}{}
	id := req.ID
	n.copies.Go(func() {
		defer func() { <-n.copying }()
		n.finish(id, call, then())
	})
}

func (n *notifier) finish(id uint64, call *FileCall, err error) {
	call.close()
	if err != nil {
		n.answer(id, unix.EIO)
		return
	}
	n.goOn(id)
}

// waits reports whether the call still waits for its answer.
func (n *notifier) waits(id uint64) bool {
	return n.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

// goOn lets the kernel carry the call out.
func (n *notifier) goOn(id uint64) {
	n.send(&seccompResp{ID: id, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// answer makes the call return errno, or 0.
func (n *notifier) answer(id uint64, errno unix.Errno) {
	n.send(&seccompResp{ID: id, Error: -int32(errno)})
}

// send ignores errors: they mean that the caller died or that a signal took it out of the call.
func (n *notifier) send(resp *seccompResp) {
	_ = n.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(resp))
}

func (n *notifier) ioctl(req uint, arg unsafe.Pointer) error {
	return ioctl(uintptr(n.fd), req, arg)
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
