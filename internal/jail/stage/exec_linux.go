package stage

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"github.com/tapedeck-dev/tapedeck/internal/openfiles"
	"golang.org/x/sys/unix"
)

// An execStage is what the exec stage does, as a list: the init forks it, and a process of many threads that forks has in its child one of
// them, and nothing of the Go runtime that needs another. So all that it does is to make these calls one after the other.
type execStage struct {
	control uintptr // its socket
	trial   int     // the socket of the trial connect
	calls   []call
	failed  [2]byte          // the packet that says which failed
	pinned  []unsafe.Pointer // what the calls point to
	err     error            // what could not be made a call of
}

// A call is a system call of the exec stage, which goes on where its error is want and what it returns is no less than least.
type call struct {
	step   Step // which it fails at; stepNone: whatever comes of it
	nr     uintptr
	args   [5]uintptr
	want   syscall.Errno
	least  uintptr
	result *int32 // where what it returns is put, for a later one; nil for nowhere
}

// newExecStage makes the list for a program, in its order. It is to be closed.
func newExecStage(in *initProcess, spec *ExecSpec, n Notified, background bool) *execStage {
	s := &execStage{control: uintptr(in.exec)}
	s.settle(in, spec)
	if in.tty >= 0 && !background {
		s.foreground(in.tty)
	}
	s.confine()
	s.listen(n)
	s.try(n)
	s.become(spec, n)
	return s
}

// close closes what the child has too, and closes with execve.
func (s *execStage) close() { unix.Close(s.trial) }

func (s *execStage) add(c call) { s.calls = append(s.calls, c) }

func (s *execStage) pin(p unsafe.Pointer) uintptr {
	s.pinned = append(s.pinned, p)
	return uintptr(p)
}

// text is a string as the kernel takes it.
func (s *execStage) text(text string) uintptr {
	p, err := unix.BytePtrFromString(text)
	s.err = errors.Join(s.err, err)
	return s.pin(unsafe.Pointer(p))
}

// texts are strings as execve takes them.
func (s *execStage) texts(list []string) uintptr {
	p, err := syscall.SlicePtrFromStrings(list)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return 0
	}
	return s.pin(unsafe.Pointer(&p[0]))
}

// settle takes the place of the program: its session, or its process group in that of the init's, its streams, its directory.
func (s *execStage) settle(in *initProcess, spec *ExecSpec) {
	nr := uintptr(unix.SYS_SETSID)
	if in.tty >= 0 {
		nr = unix.SYS_SETPGID
	}
	s.add(call{step: stepSession, nr: nr})
	for i, fd := range in.streams {
		s.add(call{step: stepStreams, nr: unix.SYS_DUP3, args: [5]uintptr{uintptr(fd), uintptr(i)}})
	}
	s.add(call{step: stepDir, nr: unix.SYS_CHDIR, args: [5]uintptr{s.text(spec.Dir)}})
	child := strconv.Itoa(filter.ChildPID - 1)
	s.add(call{nr: unix.SYS_PWRITE64, args: [5]uintptr{uintptr(in.lastPID), s.text(child), uintptr(len(child)), 0}}) // see setLastPID
}

// foreground makes the program's process group that which the terminal is of, before it can read from there. SIGTTOU, which a group behind
// gets for that, is blocked meanwhile.
func (s *execStage) foreground(tty int) {
	mask, group := &[1]uint64{1 << (unix.SIGTTOU - 1)}, &[1]int32{filter.ProgramPID}
	for _, c := range []call{
		{nr: unix.SYS_RT_SIGPROCMASK, args: [5]uintptr{unix.SIG_BLOCK, s.pin(unsafe.Pointer(mask)), 0, 8}},
		{nr: unix.SYS_IOCTL, args: [5]uintptr{uintptr(tty), unix.TIOCSPGRP, s.pin(unsafe.Pointer(group))}},
		{nr: unix.SYS_RT_SIGPROCMASK, args: [5]uintptr{unix.SIG_UNBLOCK, s.pin(unsafe.Pointer(mask)), 0, 8}},
	} {
		s.add(c)
	}
}

// confine takes away what the program must not have: it empties every set of capabilities, and locks what would give a uid 0 its
// capabilities back.
func (s *execStage) confine() {
	prctl := func(failed Step, args ...uintptr) {
		c := call{step: failed, nr: unix.SYS_PRCTL}
		copy(c.args[:], args)
		s.add(c)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			break // past the last one that this kernel knows
		}
		s.err = errors.Join(s.err, err)
		if err != nil {
			break
		}
		prctl(stepDrop, unix.PR_CAPBSET_DROP, c)
	}
	// NOROOT, NO_SETUID_FIXUP, KEEP_CAPS cleared, NO_CAP_AMBIENT_RAISE: each with its lock (linux/securebits.h).
	const locked = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7
	prctl(stepLock, unix.PR_SET_SECUREBITS, locked)
	prctl(stepAmbient, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL)
	hdr, none := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, new([2]unix.CapUserData)
	s.add(call{step: stepDrop, nr: unix.SYS_CAPSET, args: [5]uintptr{s.pin(unsafe.Pointer(hdr)), s.pin(unsafe.Pointer(none))}})
	prctl(stepPrivileges, unix.PR_SET_NO_NEW_PRIVS, 1)
}

// listen installs the filter and hands its listener out, which execve closes.
func (s *execStage) listen(n Notified) {
	prog, err := filter.Program(n.rules())
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	rights := unix.UnixRights(0)
	s.add(call{
		step: stepFilter, nr: unix.SYS_SECCOMP, args: [5]uintptr{unix.SECCOMP_SET_MODE_FILTER, filter.Flags(), s.pin(unsafe.Pointer(prog))},
		result: (*int32)(unsafe.Pointer(&rights[unix.CmsgLen(0)])),
	})
	packet := []byte{StepListener, 0}
	iov := &unix.Iovec{Base: &packet[0]}
	iov.SetLen(len(packet))
	msg := &unix.Msghdr{Iov: iov, Iovlen: 1, Control: &rights[0]}
	msg.SetControllen(len(rights))
	s.add(call{step: stepFilter, nr: unix.SYS_SENDMSG, args: [5]uintptr{s.control, s.pin(unsafe.Pointer(msg)), 0}})
}

// rules are those of the filter: reads of clocks and opens first.
func (n Notified) rules() []filter.Rule {
	var rules []filter.Rule
	if n.Inputs {
		rules = append(rules, inputs.Rules(n.Ticks, n.Shifted)...)
	}
	if n.Files {
		rules = append(rules, changes.Rules()...)
	}
	if n.Spawns {
		rules = append(rules, spawns.Rules()...)
	}
	return append(rules, filter.Always()...)
}

// try makes calls that show before the run what does not work on this kernel. An execve of nothing the recorder must turn into success; a
// connect it must make, and nobody can accept it; a socket it must refuse.
func (s *execStage) try(n Notified) {
	if n.Spawns {
		s.add(call{step: stepTrace, nr: unix.SYS_EXECVE})
	}
	var err error
	s.trial, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	s.err = errors.Join(s.err, err)
	const name = "\x00tapedeck trial"
	addr := &unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&addr.Path[0])), len(addr.Path)), name)
	length := unsafe.Offsetof(addr.Path) + uintptr(len(name))
	s.add(call{step: stepConnect, nr: unix.SYS_CONNECT, args: [5]uintptr{uintptr(s.trial), s.pin(unsafe.Pointer(addr)), length}, want: unix.ECONNREFUSED})
	s.add(call{step: stepRefused, nr: unix.SYS_SOCKET, args: [5]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW}, want: unix.EPERM})
}

// become waits for the recorder's word and becomes the program.
func (s *execStage) become(spec *ExecSpec, n Notified) {
	packet := &[2]byte{StepReady}
	args := [5]uintptr{s.control, s.pin(unsafe.Pointer(packet)), uintptr(len(packet))}
	s.add(call{step: stepExec, nr: unix.SYS_WRITE, args: args})
	s.add(call{step: stepExec, nr: unix.SYS_READ, args: args, least: 1}) // nothing comes of a recorder that is gone
	if n.Inputs {
		s.sameAddresses()
	}
	ignore := &[4]uintptr{1} // struct sigaction: SIG_IGN
	for _, sig := range spec.Ignored {
		s.add(call{nr: unix.SYS_RT_SIGACTION, args: [5]uintptr{uintptr(sig), s.pin(unsafe.Pointer(ignore)), 0, 8}})
	}
	// Descriptors that the recorder's caller left open to all its children are not the program's.
	s.add(call{step: stepClose, nr: unix.SYS_CLOSE_RANGE, args: [5]uintptr{3, 1<<31 - 1, unix.CLOSE_RANGE_CLOEXEC}})
	limit := openfiles.AtStart()
	s.add(call{nr: unix.SYS_PRLIMIT64, args: [5]uintptr{0, unix.RLIMIT_NOFILE, s.pin(unsafe.Pointer(&limit))}})
	s.add(call{step: stepExec, nr: unix.SYS_EXECVE, args: [5]uintptr{s.text(spec.Path), s.texts(spec.Argv), s.texts(spec.Env)}})
}

// sameAddresses makes the kernel give each program of this process and of its children the same addresses in every run. Where it does
// not, they are an input that is not given again.
func (s *execStage) sameAddresses() {
	const addrNoRandomize, query = 0x0040000, 0xffffffff // ADDR_NO_RANDOMIZE of linux/personality.h
	if now, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, query, 0, 0); errno == 0 {
		s.add(call{nr: unix.SYS_PERSONALITY, args: [5]uintptr{now | addrNoRandomize}})
	}
}

// fork makes the process that runs the list.
func (s *execStage) fork() (pid int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	pid, errno := s.run()
	runtime.KeepAlive(s)
	if errno != 0 {
		return 0, errno
	}
	return pid, nil
}

// run returns in the parent alone. The child may not allocate, grow its stack or wait for a lock.
//
//go:norace
//go:nosplit
//go:noinline
func (s *execStage) run() (pid int, errno syscall.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || r != 0 {
		return int(r), errno
	}
	if r, _, _ = unix.RawSyscall6(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0); !misnumbered(int(r)) {
		for i := range s.calls {
			c := &s.calls[i]
			r, _, errno = unix.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0)
			if c.step != stepNone && (errno != c.want || r < c.least) {
				s.failed[0], s.failed[1] = c.step, byte(errno)
				unix.RawSyscall6(unix.SYS_WRITE, s.control, uintptr(unsafe.Pointer(&s.failed)), uintptr(len(s.failed)), 0, 0, 0)
				break
			}
			if c.result != nil {
				*c.result = int32(r)
			}
		}
	}
	for {
		unix.RawSyscall6(unix.SYS_EXIT_GROUP, 127, 0, 0, 0, 0, 0)
	}
}

// A Step is what the exec stage says that it has done or, with an error's number, that it could not do: two bytes, a packet.
type Step = byte

// The steps in their order.
const (
	stepNone Step = iota
	stepFork      // the init's
	stepSession
	stepStreams
	stepDir
	stepDrop
	stepLock
	stepAmbient
	stepPrivileges
	stepFilter
	StepListener // the notification listener is here
	stepTrace
	stepConnect
	stepRefused
	StepReady // all stands, and it waits for Go
	stepClose
	stepExec
)

// OpFilter is the step that installs the filter.
const OpFilter = "install the system call filter"

// steps are those that fail as a *step.Error.
var steps = map[Step]string{
	stepFork: "start the exec stage", stepSession: "begin the program's session", stepStreams: "hand over the program's streams",
	stepDrop: "drop capabilities", stepLock: "lock capabilities", stepAmbient: "drop ambient capabilities", stepPrivileges: "set no_new_privs",
	stepFilter: OpFilter, stepTrace: spawns.Step, stepConnect: connect.Step, stepRefused: OpFilter, stepClose: "close descriptors",
}

// failure is a step that failed with errno, 0 where a call succeeded that must not, as the error that it is.
func (s *ExecSpec) failure(failed Step, errno syscall.Errno) error {
	var detail string
	switch failed {
	case stepDir:
		return &step.ExecError{Op: "chdir", Path: s.Dir, Err: errno}
	case stepExec:
		return &step.ExecError{Op: "execve", Path: s.Path, Err: errno}
	case stepConnect:
		if detail = "the trial was not refused as it must be"; errno == unix.EPERM {
			detail = toRead()
		}
	case stepRefused:
		if detail = "the trial notification was not answered"; errno == 0 {
			detail = "a refused call was let through"
		}
	}
	op, ok := steps[failed]
	if !ok {
		return fmt.Errorf("the exec stage says %d: %w", failed, errno)
	}
	if errno == 0 {
		errno = unix.ENOTSUP
	}
	return &step.Error{Op: op, Detail: detail, Err: errno}
}

// toRead says what must change where a program's memory cannot be read.
func toRead() string {
	if scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); strings.TrimSpace(string(scope)) == "3" {
		return "kernel.yama.ptrace_scope is 3: boot with a lower one"
	}
	return "a security module or a container's seccomp profile forbids process_vm_readv or pidfd_getfd: allow it"
}

// An Exec is the recorder's end of the exec stage's control socket.
type Exec struct {
	*net.UnixConn
	spec *ExecSpec
}

// NewExec makes a connected pair: our end, and the file that the exec stage of spec inherits.
func NewExec(spec *ExecSpec) (*Exec, *os.File, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, nil, err
	}
	return &Exec{ours, spec}, theirs, nil
}

// Expect waits until a step is done, and returns the descriptors that came with it. The error is that of the step that failed, io.EOF where
// the other end is gone.
func (e *Exec) Expect(done Step) ([]int, error) {
	var packet [2]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := e.ReadMsgUnix(packet[:], oob)
	if err != nil {
		return nil, orGone(err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	fds, err := rightsOf(oob[:oobn])
	if err == nil && packet[0] != done {
		inspect.CloseAll(fds)
		fds, err = nil, e.spec.failure(packet[0], syscall.Errno(packet[1]))
	}
	return fds, err
}

// Go lets the exec stage become the program, and returns once it has.
func (e *Exec) Go() error {
	if _, err := e.Write([]byte{0}); err != nil {
		return err
	}
	_, err := e.Expect(stepNone)
	if errors.Is(err, io.EOF) { // its end is closed by execve
		return nil
	}
	return err
}
