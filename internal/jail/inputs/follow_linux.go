package inputs

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/trace"
	"github.com/tapedeck-dev/tapedeck/internal/vdso"
	"golang.org/x/sys/unix"
)

// A following is an execve that goes on, and is looked at once it has made another program: the process is stopped for a moment, as
// a debugger does, before that program's first instruction. What that would read from the kernel's pages, without a call, is
// hidden from it then. Of an execve that fails nothing is seen.
type following struct {
	tid int // of the thread; when its execve has succeeded it has the number of its process
	is  process.Status
	of  *process.Process
}

// Follow lets an execve go on. What it returns, if anything, is to be run on this thread, which is its tracer now.
func (in *Answerer) Follow(c *notify.Call) (await func()) {
	defer c.GoOn()
	if in.followed(c.Task, true) { // a program that is looked for along PATH is executed again before the failure of the first try was seen
		return nil
	}
	f, err := in.traceExec(c.Task)
	if err != nil {
		if errors.Is(err, unix.EPERM) && c.Waits() {
			in.Untraced.Add(1)
		}
		in.followed(c.Task, false)
		return nil
	}
	return func() { f.await(in) }
}

// followed notes whether a thread is followed, and returns what was noted. It is taken back while the thread stands still, or is gone.
func (in *Answerer) followed(task int, now bool) (was bool) {
	in.table.Lock()
	defer in.table.Unlock()
	th := in.table.Note(task)
	was, th.Followed = th.Followed, now
	in.table.Forget(task)
	return was
}

func (in *Answerer) traceExec(tid int) (*following, error) {
	is, err := in.table.Status(tid)
	if err != nil {
		return nil, err
	}
	in.table.Lock()
	of := in.hold(is.Process)
	in.table.Unlock()
	if err := trace.Seize(tid, unix.PTRACE_O_TRACEEXEC); err != nil {
		return nil, err
	}
	return &following{tid, is, of}, nil
}

// await ends with the execve.
func (f *following) await(in *Answerer) {
	stopped, sig, executed := trace.AwaitExec(f.tid, f.is.Process)
	if executed {
		if a := in.look(stopped, f); a != nil {
			if wait := a.Source.Beginning(); wait != nil {
				wait(in.letGo)
			}
		}
	}
	in.followed(f.tid, false)
	if stopped != 0 {
		trace.Release(stopped, sig)
	}
}

// look is told that a process has become another program, and returns who asks now; nil where that is not known. It stands still.
func (in *Answerer) look(pid int, f *following) *process.Asker {
	sp, err := trace.StackOf(pid)
	if err != nil {
		return nil
	}
	st, err := readStack(pid, sp)
	if err != nil {
		return nil
	}
	p := &process.Program{Argv: st.argv, Path: st.path, Handed: in.handed(pid, st.argv)}
	if cwd, err := inspect.ReadLink(in.table.View.Proc, strconv.Itoa(pid)+"/cwd"); err == nil {
		p.Dir, _ = in.table.View.Strip(cwd)
	}
	a := in.started(f.of, f.is, p)
	var program *goProgram
	if a.Process.Sharing == process.AllThreads {
		program = in.goProgramOf(pid)
	}
	st.hide(pid, a, program)
	if program != nil { // this moves the stack
		st.drawAlike(pid, a, program.draws)
	}
	return a
}

// A startStack is what the kernel put on the stack of a new program.
type startStack struct {
	argv    []string
	path    string // what was executed
	vdso    uint64 // where the kernel's code is; 0 for none
	entry   uint64 // where the type of the entry stands that names it
	random  uint64 // 16 bytes
	program uint64 // where the program's own first instruction is
	from    uint64 // the stack pointer, and
	to      uint64 // the end of the auxiliary vector
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
			return r.auxiliary(sp, argv)
		}
	}
	return nil, unix.E2BIG
}

// Types of the auxiliary vector, from linux/auxvec.h.
const (
	atNull        = 0
	atIgnore      = 1
	atEntry       = 9
	atRandom      = 25
	atExecFn      = 31
	atSysinfoEhdr = 33
)

func (r *stackReader) auxiliary(sp, argv uint64) (*startStack, error) {
	st := &startStack{from: sp}
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
			st.argv, st.to = list, r.at
			return st, err
		case atEntry:
			st.program = value
		case atRandom:
			st.random = value
		case atSysinfoEhdr:
			st.vdso, st.entry = value, at
		case atExecFn:
			st.path, _ = text.Path(r.pid, value)
		}
	}
}

// hide takes from the program, which may be one of Go, what it could read of time without asking, and gives it other random bytes.
func (st *startStack) hide(pid int, is *process.Asker, program *goProgram) {
	patch := askingWall()
	switch {
	case program != nil:
		patch = st.askingGo(program.clock, is)
	case is.Ticks:
		patch = askingAll()
	}
	if st.vdso != 0 && (patch == nil || patch.Put(tracedMemory(pid), st.vdso) != nil) {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], atIgnore)
		_ = inspect.WriteMemory(pid, st.entry, b[:]) // an error means that it was killed
	}
	if st.random != 0 {
		var b [16]byte
		is.Source.Fill(0, b[:])
		_ = inspect.WriteMemory(pid, st.random, b[:])
	}
}

// askingGo has the monotonic clock of a Go program's package time begin at about the kernel's.
func (st *startStack) askingGo(c *goClock, is *process.Asker) *vdso.Patch {
	if c == nil || !is.Source.Elapses() {
		return askingGo(nil, 0, 0)
	}
	var wall, ticks unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall) // never fails, as the other
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ticks)
	less := (wall.Nano() - is.Source.Behind() - ticks.Nano()) / second
	return askingGo(c, st.program-c.entry, int32(min(max(less, math.MinInt32), math.MaxInt32)))
}

// maxMoved bounds what is moved on a stack, in bytes: the kernel takes no more of arguments and variables.
const maxMoved = 6 << 20

// room moves a new program's stack down and returns where so many bytes above it are nobody's; false where that cannot be done.
func (st *startStack) room(pid int, length uint64) (at uint64, ok bool) {
	if st.to-st.from > maxMoved {
		return 0, false
	}
	b, to := make([]byte, st.to-st.from), (st.from-length)&^15
	if inspect.ReadMemory(pid, st.from, b) != nil {
		return 0, false
	}
	if _, err := tracedMemory(pid).WriteAt(b[:8], int64(to)); err != nil { // by which a stack grows, as by the program's own
		return 0, false
	}
	if inspect.WriteMemory(pid, to, b) != nil || trace.SetStack(pid, to) != nil {
		return 0, false
	}
	return to + uint64(len(b)), true
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
