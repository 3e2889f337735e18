package jail

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

// A following is an execve that goes on, and is looked at once it has made another program: the process is stopped for a moment, as
// a debugger does, before that program's first instruction. What that would read from the kernel's pages, without a call, is
// hidden from it then. Of an execve that fails nothing is seen.
type following struct {
	tid    int // of the thread; when its execve has succeeded it has the number of its process
	family family
	pidfd  int // of the process
}

// follow lets an execve go on. The thread that receives notifications, which is its tracer now, is to follow it.
func (n *notifier) follow(req *seccompNotif) {
	defer n.goOn(req.ID)
	tid := int(req.PID)
	if !n.inputs.follows(tid) {
		return
	}
	f, err := n.inputs.traceExec(tid)
	if err != nil {
		if errors.Is(err, unix.EPERM) && n.waits(req.ID) {
			n.inputs.untraced.Add(1)
		}
		n.inputs.unfollow(tid)
		return
	}
	n.follows = f
}

func (in *inputs) traceExec(tid int) (*following, error) {
	f, err := in.familyAt(tid)
	if err != nil {
		return nil, err
	}
	pidfd, err := unix.PidfdOpen(f.process, 0)
	if err != nil {
		return nil, err
	}
	if err := seize(tid, unix.PTRACE_O_TRACEEXEC); err != nil {
		unix.Close(pidfd)
		return nil, err
	}
	return &following{tid, f, pidfd}, nil
}

// await ends with the execve.
func (f *following) await(in *inputs) {
	_ = unix.PtraceInterrupt(f.tid) // for an execve that fails; one that succeeded forgets it
	stopped, sig, executed := awaitExec(f.tid, f.family.process)
	if !executed || !in.look(stopped, f.family, f.pidfd) {
		unix.Close(f.pidfd)
	}
	in.unfollow(f.tid)
	if stopped != 0 && detach(stopped, sig) != nil {
		letDie(stopped)
	}
}

// seize is PTRACE_SEIZE with options, which nothing has to be stopped for.
func seize(tid, options int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, uintptr(options), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// awaitExec waits until a thread of process pid stands still, and tells under which number, and the signal that it is to be given; 0
// where it is gone.
func awaitExec(tid, pid int) (stopped, sig int, executed bool) {
	at, ws, err := tracee(tid, pid)
	switch {
	case err != nil, !ws.Stopped():
		return 0, 0, false
	case uint32(ws)>>16 == unix.PTRACE_EVENT_EXEC:
		return at, 0, true
	case uint32(ws)>>16 == unix.PTRACE_EVENT_STOP:
		return at, 0, false
	}
	return at, int(ws.StopSignal()), false // a signal came first: the call is made again or has failed
}

// tracee waits for news of the one thread that this thread traces, and tells which of its two numbers it has by now. This thread may
// have other children, which somebody else waits for.
func tracee(tid, pid int) (at int, ws unix.WaitStatus, err error) {
	if tid == pid || pid == 0 {
		at, err = wait4(tid, &ws, 0)
		return at, ws, err
	}
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		at, was := wait4(tid, &ws, unix.WNOHANG)
		if at != 0 {
			return at, ws, nil
		}
		at, is := wait4(pid, &ws, unix.WNOHANG) // second: what has taken this number meanwhile is found
		if at != 0 || was != nil && is != nil {
			return at, ws, is
		}
		time.Sleep(pause)
	}
}

// wait4 tells 0 for nothing new.
func wait4(n int, ws *unix.WaitStatus, flags int) (int, error) {
	for {
		at, err := unix.Wait4(n, ws, unix.WALL|unix.WNOTHREAD|flags, nil)
		if !errors.Is(err, unix.EINTR) {
			return max(at, 0), err
		}
	}
}

// look is told that a process has become another program. It stands still.
func (in *inputs) look(pid int, f family, pidfd int) bool {
	var r registers
	if r.get(pid) != nil {
		return false
	}
	st, err := readStack(pid, r.stack())
	if err != nil {
		return false
	}
	p := &Program{Argv: st.argv, Path: st.path, Handed: in.handed(pid, st.argv)}
	if cwd, err := inspect.ReadLink(in.spawns.view.Proc, strconv.Itoa(pid)+"/cwd"); err == nil {
		p.Dir, _ = in.spawns.view.Strip(cwd)
	}
	st.hide(pid, in.started(f, p, pidfd))
	return true
}

// A startStack is what the kernel put on the stack of a new program.
type startStack struct {
	argv   []string
	path   string // what was executed
	vdso   uint64 // where the kernel's code is; 0 for none
	entry  uint64 // where the type of the entry stands that names it
	random uint64 // 16 bytes
}

// maxStack bounds the pointers to arguments and variables that are passed over, in words.
const maxStack = 1 << 20

// readStack reads argc, argv, the variables and the auxiliary vector, as they stand at a program's start (the processor's ABI).
func readStack(pid int, sp uint64) (*startStack, error) {
	r := stackReader{pid: pid, at: sp}
	argc, err := r.word()
	if err != nil || argc > maxStack {
		return nil, errors.Join(err, unix.E2BIG)
	}
	argv := sp + 8
	r.skip(argc + 1)
	for range maxStack { // the variables
		v, err := r.word()
		if err != nil {
			return nil, err
		}
		if v == 0 {
			return r.auxiliary(argv)
		}
	}
	return nil, unix.E2BIG
}

// Types of the auxiliary vector, from linux/auxvec.h.
const (
	atNull        = 0
	atIgnore      = 1
	atRandom      = 25
	atExecFn      = 31
	atSysinfoEhdr = 33
)

func (r *stackReader) auxiliary(argv uint64) (*startStack, error) {
	st := new(startStack)
	var text inspect.TextReader
	for {
		at := r.at
		kind, err1 := r.word()
		value, err2 := r.word()
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		switch kind {
		case atNull:
			list, err := text.List(r.pid, argv, inspect.MaxArgBytes)
			st.argv = list
			return st, err
		case atRandom:
			st.random = value
		case atSysinfoEhdr:
			st.vdso, st.entry = value, at
		case atExecFn:
			st.path, _ = text.Path(r.pid, value)
		}
	}
}

// hide takes from the program what it could read of time without asking, and gives it other random bytes.
func (st *startStack) hide(pid int, is *inputProcess) {
	patch := askingWall()
	if is.ticks {
		patch = askingAll()
	}
	if st.vdso != 0 && (patch == nil || patch.Put(tracedMemory(pid), st.vdso) != nil) {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], atIgnore)
		_ = inspect.WriteMemory(pid, st.entry, b[:]) // an error means that it was killed
	}
	if st.random != 0 {
		var b [16]byte
		is.source.Fill(0, b[:])
		_ = inspect.WriteMemory(pid, st.random, b[:])
	}
}

// tracedMemory is that of a process which this thread traces: pages that it cannot write to itself too.
type tracedMemory int

// WriteAt implements io.WriterAt.
func (pid tracedMemory) WriteAt(b []byte, at int64) (int, error) {
	return unix.PtracePokeData(int(pid), uintptr(at), b)
}

// A stackReader reads words, a page at a time.
type stackReader struct {
	pid  int
	at   uint64
	buf  [inspect.PageSize]byte
	from uint64 // where buf was read; nothing was for 0
	n    uint64 // bytes of it
}

func (r *stackReader) skip(words uint64) { r.at += 8 * words }

func (r *stackReader) word() (uint64, error) {
	if r.from == 0 || r.at < r.from || r.at+8 > r.from+r.n {
		r.from, r.n = r.at, inspect.PageSize-r.at%inspect.PageSize
		if err := inspect.ReadMemory(r.pid, r.at, r.buf[:r.n]); err != nil {
			return 0, err
		}
	}
	v := binary.NativeEndian.Uint64(r.buf[r.at-r.from:])
	r.at += 8
	return v, nil
}
