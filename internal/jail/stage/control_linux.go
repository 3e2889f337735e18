package stage

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"github.com/tapedeck-dev/tapedeck/internal/wire"
	"golang.org/x/sys/unix"
)

// A Kind says what a Message over the control sockets is for.
type Kind int

// Kinds of messages: who sends them, and what they say.
const (
	MsgBegun      Kind = iota + 1 // init: it has what every jail needs, and waits for MsgPlan
	MsgPlan                       // recorder to init: what the jail is to be; see handed
	MsgReady                      // init: sockets are here
	MsgFailed                     // Failure says what
	MsgSignal                     // recorder to init
	MsgOpen                       // recorder to init: open Path; the answer is MsgRoot or MsgFailed
	MsgDiag                       // recorder to init: a socket that tells of Unix sockets, in this network namespace; the same answers
	MsgRoot                       // init: what was asked for
	MsgExit                       // init: the program ended and nothing of it is left
	MsgForeground                 // recorder to init: the program gets its terminal
	MsgBackground                 // recorder to init: and loses it
	MsgStopped                    // init: Signal stopped the program
	MsgOver                       // init: the program ended, and what is left of it stands still
	MsgKill                       // recorder to init: kill that
)

// A Message is one packet. Which fields count depends on Kind; descriptors travel beside it.
type Message struct {
	Kind       Kind
	Path       string
	Signal     int
	Exit       process.Exit
	Failure    *Failure
	NotCovered []string
	Listeners  int // how many of the descriptors are listeners of ports
}

// Notified says which calls a filter notifies beside those that it always does.
type Notified struct {
	Files   bool // those that change files
	Spawns  bool // those that start programs
	Inputs  bool // those that ask for what no two runs get alike
	Ticks   bool // of these, those that read the monotonic clock, of programs that have no other way
	Shifted bool // and those that wait for a moment of a clock that lies behind the kernel's
}

// A Failure is a *step.Error on its way to the recorder.
type Failure struct {
	Op, Path, Detail string
	Errno            syscall.Errno
}

// failed wraps err, of any type, for the wire.
func failed(err error) *Message {
	f := &Failure{Op: "setup", Detail: err.Error()}
	var setup *step.Error
	if errors.As(err, &setup) {
		f.Op, f.Path, f.Detail = setup.Op, setup.Path, setup.Detail
	}
	if !errors.As(err, &f.Errno) && f.Detail == "" {
		f.Detail = err.Error()
	}
	return &Message{Kind: MsgFailed, Failure: f}
}

// Err is the failure as the error that it was.
func (f *Failure) Err() error {
	cause := error(f.Errno)
	if f.Errno == 0 {
		cause = errors.New("no system error")
	}
	return &step.Error{Op: f.Op, Path: f.Path, Detail: f.Detail, Err: cause}
}

const (
	maxMessage = 64 << 10 // bytes; a path is at most 4 KiB
	maxFDs     = 253      // the kernel's SCM_MAX_FD
)

// A Control is one end of a control socket: packets, each a message with descriptors. One goroutine may send while
// another receives.
type Control struct {
	*net.UnixConn
	buf, oob []byte // of Recv, from its first call on
}

// ControlOf takes over the recorder's end of an init's socket.
func ControlOf(f *os.File) (*Control, error) {
	c, err := connOfFile(f)
	if err != nil {
		return nil, err
	}
	return &Control{UnixConn: c}, nil
}

// pair makes a connected pair: our end, and the file that a child inherits.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	ours, err := connOf(fds[0])
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// connOf takes over fd.
func connOf(fd int) (*net.UnixConn, error) { return connOfFile(os.NewFile(uintptr(fd), "control")) }

func connOfFile(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("%s is no Unix socket", f.Name())
	}
	return u, nil
}

// Send writes one packet. The descriptors stay the caller's.
func (c *Control) Send(m *Message, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err := c.WriteMsgUnix(wire.Append(nil, m), rights, nil)
	return err
}

// Recv reads one packet; its descriptors are the caller's to close. The error is io.EOF when the other end is gone.
func (c *Control) Recv() (*Message, []int, error) {
	if c.buf == nil {
		c.buf, c.oob = make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxFDs))
	}
	n, oobn, flags, _, err := c.ReadMsgUnix(c.buf, c.oob)
	if err != nil {
		return nil, nil, orGone(err)
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	fds, err := rightsOf(c.oob[:oobn])
	m := new(Message)
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = fmt.Errorf("take descriptors: %w", unix.EMFILE)
	}
	if err == nil && flags&unix.MSG_TRUNC != 0 {
		err = fmt.Errorf("control message cut short (flags %#x)", flags)
	}
	if err == nil {
		err = wire.Decode(c.buf[:n], m) // a message has no lists of bytes, which would share them
	}
	if err != nil {
		inspect.CloseAll(fds)
		return nil, nil, err
	}
	return m, fds, nil
}

// Expect receives a message of kind; a failure is returned as its error, any other kind is one.
func (c *Control) Expect(kind Kind) (*Message, []int, error) {
	m, fds, err := c.Recv()
	switch {
	case err != nil:
		return nil, nil, err
	case m.Kind == kind:
		return m, fds, nil
	}
	inspect.CloseAll(fds)
	if m.Kind == MsgFailed && m.Failure != nil {
		return nil, nil, m.Failure.Err()
	}
	return nil, nil, fmt.Errorf("control message %d where %d was due", m.Kind, kind)
}

// orGone is io.EOF where err says that the other end is gone.
func orGone(err error) error {
	if errors.Is(err, syscall.ECONNRESET) {
		return io.EOF
	}
	return err
}

func rightsOf(oob []byte) ([]int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			inspect.CloseAll(fds)
			return nil, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

// An InitSpec is what the init is told when the program is known. Paths are resolved: none goes through a symbolic link.
type InitSpec struct {
	Hostname string
	Umask    *int
	Ports    []uint16
	TTY      int

	Background bool     // the program does not get the terminal yet
	Notified   Notified // what the filter of the exec stage, and so of the program, notifies
	Mounts     mount.Plan
}

// An ExecSpec is what the exec stage is told at its start.
type ExecSpec struct {
	Path, Dir string
	Argv, Env []string
	Ignored   []syscall.Signal // signals that the program ignores from its start
}

// Memfile puts a spec, of some size bytes, in a file in memory that a child inherits: it may be larger than a packet.
func Memfile(name string, spec any, size int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(wire.Append(make([]byte, 0, size), spec))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSpec reads what Memfile wrote and closes fd. Bytes of the spec stay where they are: they are not to be written to.
func readSpec(fd int, spec any) error {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	b, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return wire.Decode(b, spec)
}
