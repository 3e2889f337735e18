package connect

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// Step is the step that makes sure that connects can be made.
const Step = "connect in the program's place"

// A Connector makes the connections of the program in its place. A Unix socket that has a path is reached from every network
// namespace, and a filter does not see which path a connect has: so each connect comes here, its address is read once, and
// what is connected to is the file that was looked at. Nothing that the program changes meanwhile counts, as the kernel
// reads nothing of it again. This confines: where it fails the call fails.
//
// Datagrams would need the same for each sendto and sendmsg; there are no Unix datagram sockets inside instead, but pairs.
type Connector struct {
	proc   int
	inside *Diag                       // the jail's network namespace
	nested func(ns int) (*Diag, error) // another's, that the program made
	host   *Diag                       // the recorder's
	shared map[uint32]bool             // devices of the file systems that the host has mounted
	report func(Refusal)               // told of each Unix socket of the host's that was asked for
	slots  chan struct{}               // a token each
	began  time.Time

	running sync.WaitGroup

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
type miss struct{ by process.Source }

// maxMissed bounds the paths that are kept.
const maxMissed = 1024

// lookAfter is how long it takes at most to find out that the caller of an attempt is gone.
const lookAfter = 200 * time.Millisecond

// begin keeps an eye on an attempt until end.
func (c *Connector) begin(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts[a] = true
	a.look = time.AfterFunc(lookAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.attempts[a] {
			return
		}
		if process.IsOver(a.task, 0) {
			unix.Shutdown(a.fd, unix.SHUT_RDWR)
		}
		a.look.Reset(lookAfter) // it may not have come to its system call yet
	})
}

func (c *Connector) end(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.look.Stop()
	delete(c.attempts, a)
}

// Abandon shuts all sockets until no attempt is left, but does not wait for long: one may hang on what the host has, a file
// system that does not answer say.
func (c *Connector) Abandon(gone <-chan struct{}) {
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

// MaxConnects is how many connections are made at once: each may block a thread, on a full backlog say, and takes some descriptors.
const MaxConnects = 512

// New makes connections for programs whose network namespace inside tells of, which it takes over; nested tells of another one that a program made.
func New(inside *Diag, nested func(ns int) (*Diag, error), report func(Refusal)) (*Connector, error) {
	c := &Connector{proc: -1, began: time.Now(), inside: inside, nested: nested, report: report,
		shared: make(map[uint32]bool), slots: make(chan struct{}, process.ShareOfFiles(MaxConnects, 16)),
		attempts: make(map[*attempt]bool), missed: make(map[string]*miss)}
	var err error
	if c.proc, err = unix.Open("/proc", inspect.DirFlags, 0); err == nil {
		c.host, err = NewDiag()
	}
	if err == nil {
		_, err = inside.listening() // found out before the run, where the kernel has no such thing
	}
	var mounts []mountinfo.Line
	if err == nil {
		mounts, err = mountinfo.Of(c.proc, "self")
	}
	if err != nil {
		c.Close()
		return nil, &step.Error{Op: Step, Err: step.Errno(err)}
	}
	for _, m := range mounts {
		if dev, ok := m.KernelDevice(); ok {
			c.shared[dev] = true
		}
	}
	return c, nil
}

// Close ends what New opened.
func (c *Connector) Close() {
	if c.proc >= 0 {
		unix.Close(c.proc)
	}
	c.inside.Close()
	c.host.Close()
}

const maxSockaddr = 128 // bytes: the kernel's struct sockaddr_storage

// Answer answers a connect, on a goroutine of its own. by is what answers the caller; nil where the kernel does.
func (c *Connector) Answer(call *notify.Call, by process.Source) {
	select {
	case c.slots <- struct{}{}:
	default:
		call.Fail(unix.EAGAIN)
		return
	}
	c.running.Go(func() {
		err := c.connect(call, by)
		<-c.slots // before the caller goes on: its next connect has the place
		call.Fail(errnoFor(err))
	})
}

// Making is how many connections are being made.
func (c *Connector) Making() int { return len(c.slots) }

// Wait waits for all connects.
func (c *Connector) Wait() { c.running.Wait() }

// Pair answers a socketpair of Unix sockets. One of datagrams becomes one of connected packets: those keep bounds as well, and send
// to nobody else. Others the kernel refuses; it takes its arguments from registers, so they are these.
func Pair(c *notify.Call) {
	kind, protocol := int(int32(c.Args[1])), int(int32(c.Args[2]))
	datagrams := kind&filter.TypeMask == unix.SOCK_DGRAM || kind&filter.TypeMask == unix.SOCK_RAW // the kernel makes the same of both
	if !datagrams || protocol != 0 && protocol != unix.AF_UNIX {
		c.GoOn()
		return
	}
	c.Fail(errnoFor(makePair(c, kind)))
}

func makePair(c *notify.Call, kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind&^filter.TypeMask|unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer inspect.CloseAll(fds[:])
	var at [8]byte
	for i, fd := range fds {
		there, err := c.AddFD(fd, -1, kind&unix.SOCK_CLOEXEC)
		if err != nil {
			return err
		}
		binary.NativeEndian.PutUint32(at[4*i:], uint32(there))
	}
	return inspect.WriteMemory(c.Task, c.Args[3], at[:])
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
func (c *Connector) connect(call *notify.Call, by process.Source) error {
	pid := call.Task
	size := int(int32(call.Args[2]))
	if size < 0 || size > maxSockaddr {
		return unix.EINVAL
	}
	addr := make([]byte, size)
	if size > 0 {
		if err := inspect.ReadMemory(pid, call.Args[1], addr); err != nil {
			return err
		}
	}
	return inspect.WithTask(strconv.Itoa(pid), func(task int) error {
		fd, err := unix.PidfdGetfd(task, int(int32(call.Args[0])), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if !call.Waits() {
			return unix.EINTR
		}
		a := &attempt{task: task, fd: fd}
		c.begin(a)
		defer c.end(a)
		return c.connectSocket(fd, pid, addr, by, call.Waits)
	})
}

// connectSocket connects a socket of pid.
func (c *Connector) connectSocket(fd, pid int, addr []byte, by process.Source, waits func() bool) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch path, ok := inspect.SocketPath(addr); {
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
func (c *Connector) bindNetlink(fd, pid int) error {
	sa, err := unix.Getsockname(fd)
	at, ok := sa.(*unix.SockaddrNetlink)
	if err != nil || !ok || at.Pid != 0 {
		return err
	}
	is, err := process.StatusOf(c.proc, pid)
	if err != nil {
		return err
	}
	at.Pid = uint32(is.Inside)
	for range 10 {
		if err = unix.Bind(fd, at); !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
		at.Pid = rand.Uint32() | 1<<31
	}
	return err
}

// callWithAddr is bind or connect with an address of any family.
func callWithAddr(nr uintptr, fd int, addr []byte) error {
	_, _, errno := unix.Syscall(nr, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	if errno != 0 {
		return errno
	}
	return nil
}

// connectTo connects to a socket that has a path, if it belongs to the jail.
func (c *Connector) connectTo(fd, pid int, path string, by process.Source, waits func() bool) error {
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
func (c *Connector) found(path string, by process.Source, err error) {
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.missed[path]; err != nil && !known && len(c.missed) < maxMissed {
		c.missed[path] = &miss{by}
	} else if known && err == nil {
		c.missed[path] = nil
	}
}

// TellMissed reports the paths at which there was nothing as long as the program ran: whoever comes before a server of its own tries
// again.
func (c *Connector) TellMissed() {
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
func (c *Connector) older(file int) bool {
	var st unix.Statx_t
	err := unix.Statx(file, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_BTIME, &st)
	return err == nil && (st.Mode&unix.S_IFMT != unix.S_IFSOCK ||
		st.Mask&unix.STATX_BTIME != 0 && time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(c.began))
}

// open opens, with O_PATH, what a path means to a process.
func (c *Connector) open(pid int, path string) (int, error) {
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
func (c *Connector) check(file, fd, pid int) error {
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
func (c *Connector) owned(fd int, f boundFile) error {
	theirs, err := c.host.listening()
	if err != nil || theirs[f] {
		return cmp.Or(err, error(unix.ECONNREFUSED))
	}
	ours, err := c.inside.listening()
	if err != nil || ours[f] {
		return err
	}
	ns, err := notify.Ioctl(uintptr(fd), unix.SIOCGSKNS, nil)
	if err != nil {
		return unix.ECONNREFUSED
	}
	defer unix.Close(ns)
	own, err := c.nested(ns)
	if err != nil {
		return unix.ECONNREFUSED
	}
	defer own.Close()
	if ours, err = own.listening(); err != nil || ours[f] {
		return err
	}
	return unix.ECONNREFUSED
}
