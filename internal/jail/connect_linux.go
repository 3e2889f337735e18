package jail

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// opConnect is the step that makes sure that connects can be made.
const opConnect = "connect in the program's place"

// A connector makes the connections of the program in its place. A Unix socket that has a path is reached from every network
// namespace, and a filter does not see which path a connect has: so each connect comes here, its address is read once, and
// what is connected to is the file that was looked at. Nothing that the program changes meanwhile counts, as the kernel
// reads nothing of it again. This confines: where it fails the call fails.
//
// Datagrams would need the same for each sendto and sendmsg; there are no Unix datagram sockets inside instead, but pairs.
type connector struct {
	proc   int
	inside *diag                       // the jail's network namespace
	nested func(ns int) (*diag, error) // another's, that the program made
	host   *diag                       // the recorder's
	shared map[uint32]bool             // devices of the file systems that the host has mounted
	report func(Refusal)               // told of each Unix socket of the host's that was asked for
	slots  chan struct{}               // a token each
	began  time.Time

	mu       sync.Mutex
	attempts map[*attempt]bool // that may be in a system call
	missed   map[string]*miss  // paths at which there was nothing; nil where there was something later
}

// An attempt is one connect. Nothing ends the system call of one that is not answered but the shutdown of its socket.
type attempt struct {
	task, fd int // the caller, and its socket
	look     *time.Timer
}

// A miss is a process that asked for a Unix socket where there is none.
type miss struct{ by Source }

// lookAfter is how long it takes at most to find out that the caller of an attempt is gone.
const lookAfter = 200 * time.Millisecond

// begin keeps an eye on an attempt until end.
func (c *connector) begin(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts[a] = true
	a.look = time.AfterFunc(lookAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.attempts[a] {
			return
		}
		if isOver(a.task, 0) {
			unix.Shutdown(a.fd, unix.SHUT_RDWR)
		}
		a.look.Reset(lookAfter) // it may not have come to its system call yet
	})
}

func (c *connector) end(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.look.Stop()
	delete(c.attempts, a)
}

// abandon shuts all sockets until no attempt is left, but does not wait for long: one may hang on what the host has, a file
// system that does not answer say.
func (c *connector) abandon(gone <-chan struct{}) {
	const every, patience = 5 * time.Millisecond, time.Second
	for range patience / every {
		c.mu.Lock()
		for a := range c.attempts {
			unix.Shutdown(a.fd, unix.SHUT_RDWR)
		}
		c.mu.Unlock()
		select {
		case <-gone:
			return
		case <-time.After(every):
		}
	}
}

// maxConnects is how many connections are made at once: each may block a thread, on a full backlog say, and takes some descriptors.
const maxConnects = 512

// newConnector takes over inside.
func newConnector(inside *diag, nested func(ns int) (*diag, error)) (*connector, error) {
	c := &connector{proc: -1, began: time.Now(), inside: inside, nested: nested, shared: make(map[uint32]bool), slots: make(chan struct{}, shareOfFiles(maxConnects, 16)), attempts: make(map[*attempt]bool), missed: make(map[string]*miss)}
	var err error
	if c.proc, err = unix.Open("/proc", inspect.DirFlags, 0); err == nil {
		c.host, err = newDiag()
	}
	if err == nil {
		_, err = inside.listening() // found out before the run, where the kernel has no such thing
	}
	var mounts []mountinfo.Line
	if err == nil {
		mounts, err = mountinfo.Of(c.proc, "self")
	}
	if err != nil {
		c.close()
		return nil, &step.Error{Op: opConnect, Err: step.Errno(err)}
	}
	for _, m := range mounts {
		if dev, ok := m.KernelDevice(); ok {
			c.shared[dev] = true
		}
	}
	return c, nil
}

func (c *connector) close() {
	if c.proc >= 0 {
		unix.Close(c.proc)
	}
	c.inside.close()
	c.host.close()
}

const maxSockaddr = 128 // bytes: the kernel's struct sockaddr_storage

// connect answers a connect, on a goroutine of its own.
func (n *notifier) connect(req *seccompNotif) {
	select {
	case n.connector.slots <- struct{}{}:
	default:
		n.answer(req.ID, unix.EAGAIN)
		return
	}
	call := *req
	by := n.sourceOf(int(req.PID))
	n.connects.Go(func() {
		defer func() { <-n.connector.slots }()
		n.answer(call.ID, errnoFor(n.connector.connect(&call, by, func() bool { return n.waits(call.ID) })))
	})
}

// pair answers a socketpair of Unix sockets. One of datagrams becomes one of connected packets: those keep bounds as well, and send
// to nobody else. Others the kernel refuses; it takes its arguments from registers, so they are these.
func (n *notifier) pair(req *seccompNotif) {
	kind, protocol := int(int32(req.Args[1])), int(int32(req.Args[2]))
	datagrams := kind&typeMask == unix.SOCK_DGRAM || kind&typeMask == unix.SOCK_RAW // the kernel makes the same of both
	if !datagrams || protocol != 0 && protocol != unix.AF_UNIX {
		n.goOn(req.ID)
		return
	}
	n.answer(req.ID, errnoFor(n.makePair(req, kind)))
}

func (n *notifier) makePair(req *seccompNotif, kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind&^typeMask|unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFDs(fds[:])
	var at [8]byte
	for i, fd := range fds {
		there, err := n.addFD(req.ID, fd, -1, kind&unix.SOCK_CLOEXEC)
		if err != nil {
			return err
		}
		binary.NativeEndian.PutUint32(at[4*i:], uint32(there))
	}
	return inspect.WriteMemory(int(req.PID), req.Args[3], at[:])
}

// errnoFor is what the program's call returns.
func errnoFor(err error) unix.Errno {
	var errno unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	}
	return unix.ECONNREFUSED
}

// connect connects the caller's socket to the address that the caller gave, from a port of by where that is not nil. What was read is
// the caller's if it waits still: its number may be another process's otherwise.
func (c *connector) connect(req *seccompNotif, by Source, waits func() bool) error {
	pid := int(req.PID)
	size := int(int32(req.Args[2]))
	if size < 0 || size > maxSockaddr {
		return unix.EINVAL
	}
	addr := make([]byte, size)
	if size > 0 {
		if err := inspect.ReadMemory(pid, req.Args[1], addr); err != nil {
			return err
		}
	}
	return inspect.WithTask(strconv.Itoa(pid), func(task int) error {
		fd, err := unix.PidfdGetfd(task, int(int32(req.Args[0])), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if !waits() {
			return unix.EINTR
		}
		a := &attempt{task: task, fd: fd}
		c.begin(a)
		defer c.end(a)
		return c.connectSocket(fd, pid, addr, by, waits)
	})
}

// connectSocket connects a socket of pid.
func (c *connector) connectSocket(fd, pid int, addr []byte, by Source, waits func() bool) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch path, ok := socketPath(addr); {
	case err != nil:
		return err
	case domain == unix.AF_NETLINK && !toKernel(addr):
		return unix.EPERM // what the recorder may do in the jail's namespaces the program may not
	case domain == unix.AF_NETLINK && len(addr) >= sizeofNetlink:
		if err := c.bindNetlink(fd, pid); err != nil {
			return err
		}
	case domain == unix.AF_UNIX && ok:
		return c.connectTo(fd, pid, path, by, waits)
	}
	return connectFrom(fd, addr, by)
}

const sizeofNetlink = 12 // bytes: family, pad, pid, groups

// toKernel reports whether a struct sockaddr_nl names the kernel and no group, which nobody needs a capability for.
func toKernel(addr []byte) bool {
	if len(addr) < sizeofNetlink || binary.NativeEndian.Uint16(addr) != unix.AF_NETLINK {
		return true // the kernel refuses it, or disconnects
	}
	return binary.NativeEndian.Uint64(addr[4:]) == 0
}

// bindNetlink gives a netlink socket that has no address yet the one that it would get from its process's connect: its PID, or one
// that is no PID if another has that. From ours it would get the recorder's.
func (c *connector) bindNetlink(fd, pid int) error {
	sa, err := unix.Getsockname(fd)
	at, ok := sa.(*unix.SockaddrNetlink)
	if err != nil || !ok || at.Pid != 0 {
		return err
	}
	if at.Pid, err = c.pidInside(pid); err != nil {
		return err
	}
	for range 10 {
		if err = unix.Bind(fd, at); !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
		at.Pid = rand.Uint32() | 1<<31
	}
	return err
}

// pidInside is the process that a thread belongs to, as itself has it.
func (c *connector) pidInside(pid int) (uint32, error) {
	b, err := os.ReadFile("/proc/self/fd/" + strconv.Itoa(c.proc) + "/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, unix.ESRCH
	}
	for line := range strings.Lines(string(b)) {
		if list, ok := strings.CutPrefix(line, "NStgid:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(list[strings.LastIndexByte(list, '\t')+1:]), 10, 31) // the innermost namespace's
			return uint32(n), err
		}
	}
	return 0, unix.ESRCH
}

// callWithAddr is bind or connect with an address of any family.
func callWithAddr(nr uintptr, fd int, addr []byte) error {
	_, _, errno := unix.Syscall(nr, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	if errno != 0 {
		return errno
	}
	return nil
}

// socketPath returns the path in a struct sockaddr_un; an address of another family, or an abstract one, has none.
func socketPath(addr []byte) (string, bool) {
	const family = 2 // bytes
	if len(addr) <= family || len(addr) > unix.SizeofSockaddrUnix || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[family] == 0 {
		return "", false
	}
	return unix.ByteSliceToString(addr[family:]), true
}

// connectTo connects to a socket that has a path, if it belongs to the jail.
func (c *connector) connectTo(fd, pid int, path string, by Source, waits func() bool) error {
	file, err := c.open(pid, path)
	c.found(path, by, err)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	if !waits() {
		return unix.EINTR
	}
	if err = c.check(file, fd, pid); err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(file)})
	}
	if errors.Is(err, unix.ECONNREFUSED) && path[0] == '/' && c.older(file) {
		c.report(Refusal{Proto: "unix", Path: path, Reason: noSocket, By: by})
	}
	return err
}

const noSocket = "unix: no socket is there inside"

// found keeps whether there was something at a path.
func (c *connector) found(path string, by Source, err error) {
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.missed[path]; err != nil && !known && len(c.missed) < refusalBuffer {
		c.missed[path] = &miss{by}
	} else if known && err == nil {
		c.missed[path] = nil
	}
}

// tellMissed reports the paths at which there was nothing as long as the program ran: whoever comes before a server of its own tries
// again.
func (c *connector) tellMissed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(c.missed)) {
		if m := c.missed[path]; m != nil {
			c.report(Refusal{Proto: "unix", Path: path, Reason: noSocket, By: m.by})
		}
	}
	clear(c.missed)
}

// older reports whether a file stood before the start, or covers one that did.
func (c *connector) older(file int) bool {
	var st unix.Statx_t
	err := unix.Statx(file, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_BTIME, &st)
	return err == nil && (st.Mode&unix.S_IFMT != unix.S_IFSOCK ||
		st.Mask&unix.STATX_BTIME != 0 && time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(c.began))
}

// open opens, with O_PATH, what a path means to a process.
func (c *connector) open(pid int, path string) (int, error) {
	l := inspect.Lookup{View: inspect.View{Proc: c.proc}, Task: pid}
	var err error
	if l.Root, l.Text, err = inspect.RootOf(c.proc, pid); err != nil {
		return -1, err
	}
	defer unix.Close(l.Root)
	if path[0] != '/' {
		base, err := l.Base(unix.AT_FDCWD)
		if err != nil {
			return -1, err
		}
		path = base + "/" + path
	}
	f, err := l.Find(path, inspect.TheFile)
	if err != nil {
		return -1, err
	}
	defer unix.Close(f.Dir)
	return unix.Openat(f.Dir, f.Name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// check makes sure that a file is a socket of the jail's. What lies in a file system that the host has not mounted is:
// in an overlay the host's sockets are other files.
func (c *connector) check(file, fd, pid int) error {
	var st unix.Statx_t
	if err := unix.Statx(file, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Mask&unix.STATX_MNT_ID == 0 {
		return unix.ECONNREFUSED
	}
	mounts, err := mountinfo.Of(c.proc, strconv.Itoa(pid))
	if err != nil {
		return err
	}
	for _, m := range mounts {
		dev, ok := m.KernelDevice()
		if m.ID != st.Mnt_id || !ok {
			continue
		}
		if !c.shared[dev] {
			return nil
		}
		return c.owned(fd, boundFile{dev, uint32(st.Ino)})
	}
	return unix.ECONNREFUSED
}

// owned asks the jail's network namespace, or else the one of the caller's socket, and the recorder's too: the kernel tells
// the low half of an inode's number only.
func (c *connector) owned(fd int, f boundFile) error {
	theirs, err := c.host.listening()
	if err != nil || theirs[f] {
		return cmp.Or(err, error(unix.ECONNREFUSED))
	}
	ours, err := c.inside.listening()
	if err != nil || ours[f] {
		return err
	}
	ns, err := ioctlValue(uintptr(fd), unix.SIOCGSKNS, nil)
	if err != nil {
		return unix.ECONNREFUSED
	}
	defer unix.Close(ns)
	own, err := c.nested(ns)
	if err != nil {
		return unix.ECONNREFUSED
	}
	defer own.close()
	if ours, err = own.listening(); err != nil || ours[f] {
		return err
	}
	return unix.ECONNREFUSED
}

// A boundFile is what a Unix socket was bound to, as the kernel tells it.
type boundFile struct{ dev, inode uint32 }

// A diag asks the kernel for the Unix sockets of one network namespace: that of its socket.
type diag struct {
	mu  sync.Mutex
	fd  int
	buf []byte
}

func newDiag() (*diag, error) {
	fd, err := diagSocket()
	if err != nil {
		return nil, err
	}
	return &diag{fd: fd}, nil
}

func diagSocket() (int, error) {
	return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
}

func (d *diag) close() {
	if d != nil {
		unix.Close(d.fd)
	}
}

// Of linux/unix_diag.h, and the kernel's number of the state of a listening socket.
const (
	unixDiagVFS  = 1
	udiagShowVFS = 2
	stateListen  = 10
)

// listening returns what the sockets are bound to that can be connected to.
func (d *diag) listening() (map[boundFile]bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const head, ask = unix.NLMSG_HDRLEN, 24 // bytes: struct nlmsghdr, struct unix_diag_req
	var req [head + ask]byte
	order := binary.NativeEndian
	order.PutUint32(req[0:], uint32(len(req)))
	order.PutUint16(req[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req[head] = unix.AF_UNIX
	order.PutUint32(req[head+4:], 1<<stateListen)
	order.PutUint32(req[head+12:], udiagShowVFS)
	if err := unix.Sendto(d.fd, req[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	if d.buf == nil {
		d.buf = make([]byte, 64<<10) // more than the kernel sends at once
	}
	out := make(map[boundFile]bool)
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if done, err := addListening(out, d.buf[:n]); done || err != nil {
			return out, err
		}
	}
}

// addListening reads the messages of one packet.
func addListening(out map[boundFile]bool, b []byte) (done bool, err error) {
	order := binary.NativeEndian
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(order.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return false, unix.EBADMSG
		}
		body := b[unix.NLMSG_HDRLEN:size]
		switch order.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, unix.EBADMSG
			}
			return false, unix.Errno(-int32(order.Uint32(body)))
		case unix.SOCK_DIAG_BY_FAMILY:
			const msg = 16 // bytes: struct unix_diag_msg
			if f, ok := vfsOf(body[min(msg, len(body)):]); ok {
				out[f] = true
			}
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return false, nil
}

// vfsOf finds the attribute that says what a socket is bound to.
func vfsOf(b []byte) (boundFile, bool) {
	const head = 4 // bytes: length, type
	order := binary.NativeEndian
	for len(b) >= head {
		size := int(order.Uint16(b))
		if size < head || size > len(b) {
			break
		}
		if order.Uint16(b[2:]) == unixDiagVFS && size >= head+8 {
			return boundFile{inode: order.Uint32(b[head:]), dev: order.Uint32(b[head+4:])}, true
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return boundFile{}, false
}
