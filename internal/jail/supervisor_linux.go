package jail

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"github.com/tapedeck-dev/tapedeck/internal/jail/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"golang.org/x/sys/unix"
)

// A supervisor answers the notified calls of a jail: it knows whose each is.
type supervisor struct {
	calls    *notify.Listener
	report   func(Refusal)
	connects *connect.Connector
	files    *changes.Watch   // nil: no such calls are notified
	spawns   *spawns.Finder   // likewise
	inputs   *inputs.Answerer // likewise
	after    func()           // what the thread that receives is to do once a call is answered
}

// serve takes over the descriptor of the notifications.
func (s *supervisor) serve(fd int) (err error) {
	s.calls, err = notify.Listen(fd, s.answer)
	return err
}

// close waits for what a Watcher's functions still copy, and ends connects. It is called once.
func (s *supervisor) close() {
	if s.calls != nil {
		s.calls.Stop()
	}
	if s.inputs != nil {
		s.inputs.Close()
	}
	if s.files != nil {
		s.files.Wait()
	}
	if s.connects != nil {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			s.connects.Wait()
			if s.calls != nil {
				s.calls.Close()
			}
			s.connects.Close()
		}()
		s.connects.Abandon(gone)
	}
	if s.spawns != nil {
		s.spawns.Close()
	}
}

// answer has a call answered by whose it is.
func (s *supervisor) answer(c *notify.Call) (after func()) {
	s.after = nil
	switch {
	case s.inputs != nil && s.inputs.Answer(c):
	case c.Nr == unix.SYS_SOCKET:
		s.refuse(c)
	case c.Nr == unix.SYS_SOCKETPAIR:
		connect.Pair(c)
	case c.Nr == unix.SYS_CONNECT:
		s.connects.Answer(c, s.sourceOf(c.Task))
	case s.spawns != nil && (c.Nr == unix.SYS_EXECVE || c.Nr == unix.SYS_EXECVEAT):
		s.spawns.Answer(c)
	case s.files != nil:
		s.files.Answer(c)
	default:
		c.GoOn()
	}
	return s.after
}

// start lets an execve go on.
func (s *supervisor) start(c *notify.Call) {
	if s.inputs == nil {
		c.GoOn()
		return
	}
	s.after = s.inputs.Follow(c)
}

// sourceOf is what answers a thread; nil where the kernel does.
func (s *supervisor) sourceOf(task int) Source {
	if s.inputs == nil {
		return nil
	}
	return s.inputs.SourceOf(task)
}

// refuse answers a socket call, which the filter notifies of those that it never lets through.
func (s *supervisor) refuse(c *notify.Call) {
	family, kind := int(int32(c.Args[0])), int(int32(c.Args[1]))&filter.TypeMask
	errno := unix.EAFNOSUPPORT
	if family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_PACKET {
		errno = unix.EPERM
	}
	// Reported before it is answered: the trial before the program's start must not be counted as the program's.
	proto := socketName(family, kind, int(int32(c.Args[2])))
	s.report(Refusal{Proto: proto, Reason: proto + " socket: only TCP, UDP and Unix sockets exist inside"})
	c.Fail(errno)
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

const refusalBuffer = 1024 // refusals that wait for a slow reader

// refusals gathers what was refused from the filter's notifications and from the packets on the loopback device.
type refusals struct {
	out   chan Refusal
	lost  atomic.Int64
	armed atomic.Bool // the exec stage's own trial is over

	sniff *network.Sniffer

	mu     sync.Mutex
	closed bool
}

func newRefusals() *refusals {
	return &refusals{out: make(chan Refusal, refusalBuffer)}
}

// arm makes everything from now on the program's.
func (r *refusals) arm() { r.armed.Store(true) }

// add must not block: a notified call waits for it.
func (r *refusals) add(x Refusal) {
	if !r.armed.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	select {
	case r.out <- x:
	default:
		r.lost.Add(1)
	}
}

// stop reads what is left and closes the channel. It is called once.
func (r *refusals) stop() {
	if r.sniff != nil {
		r.sniff.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	close(r.out)
}
