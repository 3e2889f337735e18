package jail

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/unwind"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// inputs answers what processes ask the kernel for that no two runs would get alike.
type inputs struct {
	to     Inputs
	spawns *spawns
	begins func() // called while the jail's program stands before its first instruction

	mu       sync.Mutex
	tasks    map[int]*inputProcess // by thread
	program  *inputProcess         // the jail's; nil before its execve
	status   [4096]byte            // of /proc
	outcomes []outcome             // to be told by who has the mutex

	untraced atomic.Int64   // programs whose clock could not be taken, for they are debugged
	followed map[int]bool   // threads whose execve is being followed
	shifted  map[int]uint64 // where the timeout of threads lies that are to make their call again; the notifier's alone
	buf      [maxFill]byte  // the same
	calls    map[int]int    // open files of threads; the same
}

// An inputProcess is one process as its inputs know it: since an execve, or since its fork.
type inputProcess struct {
	pid    int
	source Source
	forker Source // of the process that forked it; nil once it has executed something
	shares sharing
	code   *unwind.Space // what it has mapped; nil before that is asked for
	ticks  bool          // its monotonic clock is answered
	tasks  []int
	others []*inputProcess // of its threads that have sources of their own
	rest   *inputProcess   // of others, the one of all threads but the first; nil for none yet
	told   bool            // how it ended
}

// maxFill is how many bytes one getrandom is given at most. Whoever wants more asks again, as it does after a signal.
const maxFill = 64 << 10

// Clocks of clock_gettime that tell the wall time, and those that tell how long the machine has been up.
var (
	wallClocks = []uint32{unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE}
	tickClocks = []uint32{unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_COARSE, unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_BOOTTIME}
)

// inputRules notify the calls that inputs answers.
func inputRules(o notified) []bpf.Instruction {
	p := whenClock(wallClocks)
	if o.Ticks {
		p = whenClock(slices.Concat(wallClocks, tickClocks))
	}
	for _, nr := range wallCalls {
		p = append(p, whenEqual(nr, retNotify)...)
	}
	p = append(p, whenEqual(unix.SYS_GETRANDOM, retNotify)...)
	p = append(p, whenEqual(unix.SYS_BIND, retNotify)...)
	p = append(p, nameRules()...)
	p = append(p, whenReading(unix.SYS_OPENAT, true, dataArg2)...)
	if sysOpen >= 0 {
		p = append(p, whenReading(sysOpen, false, dataArg1)...)
	}
	if o.Waits {
		p = append(p, whenFutexTimes()...)
		p = append(p, whenBits(unix.SYS_CLOCK_NANOSLEEP, dataArg1, unix.TIMER_ABSTIME, retNotify, retAllow)...)
		p = append(p, whenBits(unix.SYS_TIMERFD_SETTIME, dataArg1, unix.TFD_TIMER_ABSTIME, retNotify, retAllow)...)
		p = append(p, whenBits(unix.SYS_TIMER_SETTIME, dataArg1, unix.TIMER_ABSTIME, retNotify, retAllow)...)
		p = append(p, whenPointer(unix.SYS_MQ_TIMEDSEND, dataArg(4))...)
		p = append(p, whenPointer(unix.SYS_MQ_TIMEDRECEIVE, dataArg(4))...)
	}
	return p
}

// whenClock notifies a clock_gettime of one of these.
func whenClock(clocks []uint32) []bpf.Instruction {
	p := []bpf.Instruction{bpf.LoadAbsolute{Off: dataArg0, Size: 4}}
	for i, c := range clocks {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c, SkipTrue: uint8(len(clocks) - i)})
	}
	p = append(p, bpf.RetConstant{Val: retAllow}, bpf.RetConstant{Val: retNotify})
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLOCK_GETTIME, SkipTrue: uint8(len(p))}}, p...)
}

// whenFutexTimes notifies a futex that waits until a moment: of the wall time by a flag, of the monotonic clock, and what takes a mutex with
// priority inheritance always.
func whenFutexTimes() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_FUTEX, SkipTrue: 11},
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: futexRealtime, SkipTrue: 8},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: futexCommand},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: futexLockPI, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: futexWaitBitset, SkipTrue: 4},
		bpf.LoadAbsolute{Off: dataArg(3), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		bpf.LoadAbsolute{Off: dataArg(3) + dataHigh, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow},
		bpf.RetConstant{Val: retNotify},
	}
}

// whenReading notifies an open for reading by a path that starts at the root or in the working directory: a random device may be
// meant. What walks trees opens from directory to directory, and pays nothing.
func whenReading(nr int, at bool, flags uint32) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: flags, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: notReading, SkipTrue: 1},
		bpf.RetConstant{Val: retNotify},
	}
	if at {
		p = append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: dataArg0, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: atCwd, SkipTrue: 3},
		}, p...)
	}
	p = append(p, bpf.LoadAbsolute{Off: dataNr, Size: 4})
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(nr), SkipTrue: uint8(len(p))}}, p...)
}

const (
	notReading = writeFlags | unix.O_PATH | unix.O_DIRECTORY
	atCwd      = 0xffffff9c // AT_FDCWD as 32 bits
)

// readOpen returns the path and the flags of an open that whenReading notifies.
func readOpen(req *seccompNotif) (path uint64, flags uint32, ok bool) {
	switch {
	case req.Nr == unix.SYS_OPENAT && uint32(req.Args[0]) == atCwd:
		path, flags, ok = req.Args[1], uint32(req.Args[2]), true
	case req.Nr == sysOpen:
		path, flags, ok = req.Args[0], uint32(req.Args[1]), true
	}
	return path, flags, ok && flags&notReading == 0
}

// From linux/futex.h.
const (
	futexRealtime   = 256 // FUTEX_CLOCK_REALTIME
	futexCommand    = 127 // without FUTEX_CLOCK_REALTIME and FUTEX_PRIVATE_FLAG
	futexLockPI     = 6
	futexWaitBitset = 9
)

// newInputs needs what finds out about spawns.
func newInputs(to Inputs, s *spawns, begins func()) *inputs {
	return &inputs{to: to, spawns: s, begins: begins, tasks: make(map[int]*inputProcess), followed: make(map[int]bool), shifted: make(map[int]uint64), calls: make(map[int]int)}
}

// isInput reports whether a call is one of inputRules.
func isInput(nr int32) bool {
	switch nr {
	case unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM:
		return true
	}
	return nr == sysTime || isWait(nr) || isAsked(nr)
}

func isAsked(nr int32) bool {
	switch nr {
	case unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_SYSINFO, unix.SYS_STATX:
		return true
	}
	return false
}

func isWait(nr int32) bool {
	switch nr {
	case unix.SYS_FUTEX, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMER_SETTIME, unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE:
		return true
	}
	return false
}

// input answers one call. Before the program's execve, and where nothing can be found out about processes, the kernel does.
func (n *notifier) input(req *seccompNotif) {
	p := n.inputs.of(int(req.PID))
	if p == nil {
		n.goOn(req.ID)
		return
	}
	switch {
	case req.Nr == unix.SYS_CLOCK_GETTIME:
		n.clock(req, p)
	case req.Nr == unix.SYS_GETTIMEOFDAY:
		n.timeOfDay(req, n.now(req, p))
	case req.Nr == unix.SYS_GETRANDOM:
		n.random(req, p)
	case isWait(req.Nr):
		n.waitFor(req, p)
	case isAsked(req.Nr):
		if !n.asked(req, p) {
			n.goOn(req.ID)
		}
	default:
		n.time(req, n.now(req, p))
	}
}

func (n *notifier) now(req *seccompNotif, p *inputProcess) int64 {
	return p.source.Now(n.inputs.place(req, p))
}

func (n *notifier) clock(req *seccompNotif, p *inputProcess) {
	switch {
	case slices.Contains(wallClocks, uint32(req.Args[0])):
		n.tell(req, req.Args[1], n.now(req, p), 1)
	case p.ticks:
		n.tell(req, req.Args[1], p.source.Tick(n.inputs.place(req, p)), 1)
	default:
		n.goOn(req.ID)
	}
}

// exit lets a process end once its source says so. What has only forked, and asked for nothing, is nobody of whom anything is known.
func (n *notifier) exit(req *seccompNotif) {
	var wait func(context.Context)
	if p := n.inputs.known(int(req.PID)); p != nil {
		wait = p.source.Ending()
	}
	id := req.ID
	if wait == nil {
		n.goOn(id)
		return
	}
	n.held.Go(func() {
		wait(n.letGo)
		n.goOn(id)
	})
}

// open gives whoever opens a random device a pipe of its own that the recorder fills.
func (n *notifier) open(req *seccompNotif, path uint64, flags uint32) {
	text, err := n.spawns.text.Path(int(req.PID), path)
	if err == nil {
		n.inputs.to.Reads(text)
	}
	if err == nil && n.procOpened(req, text, flags) {
		return
	}
	if err != nil || text != "/dev/urandom" && text != "/dev/random" {
		n.goOn(req.ID)
		return
	}
	p := n.inputs.of(int(req.PID))
	var ends [2]int
	if p == nil || unix.Pipe2(ends[:], unix.O_CLOEXEC) != nil {
		n.goOn(req.ID)
		return
	}
	defer unix.Close(ends[0])
	if flags&unix.O_NONBLOCK != 0 {
		unix.SetNonblock(ends[0], true)
	}
	unix.SetNonblock(ends[1], true)
	to := os.NewFile(uintptr(ends[1]), "random")
	from := filler{p.source.Opened()}
	_, _ = to.Write(from.piece()) // who does not block has something
	if err := n.sendFD(req.ID, ends[0], int(flags&unix.O_CLOEXEC)); err != nil {
		to.Close()
		n.goOn(req.ID) // before Linux 5.14; a caller that is gone does not mind
		return
	}
	go func() { // ends with its last reader, at the latest with the jail
		defer to.Close()
		_, _ = io.Copy(to, from)
	}()
}

// filler reads random bytes.
type filler struct{ Filler }

func (f filler) piece() []byte {
	b := make([]byte, inspect.PageSize)
	f.Fill(b)
	return b
}

// Read implements io.Reader.
func (f filler) Read(b []byte) (int, error) {
	f.Fill(b)
	return len(b), nil
}

// sendFD makes the call return a descriptor that stands for fd. A signal to this thread meanwhile, as Go's scheduler sends them, would
// have it return 0 instead, without one.
func (n *notifier) sendFD(id uint64, fd, flags int) error {
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	var old unix.Sigset_t
	if unix.PthreadSigmask(unix.SIG_BLOCK, &all, &old) == nil {
		defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	}
	a := seccompAddFD{ID: id, Flags: unix.SECCOMP_ADDFD_FLAG_SEND, SrcFD: uint32(fd), NewFlags: uint32(flags)}
	_, err := ioctlValue(uintptr(n.fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
	return err
}

const (
	second      = 1e9 // ns
	microsecond = 1e3
)

// tell answers a call that has the time written at addr, as seconds and units of so many ns.
func (n *notifier) tell(req *seccompNotif, addr uint64, now, unit int64) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], uint64(now/second))
	binary.NativeEndian.PutUint64(b[8:], uint64(now%second/unit))
	n.answer(req.ID, errnoWriting(inspect.WriteMemory(int(req.PID), addr, b[:])))
}

func (n *notifier) timeOfDay(req *seccompNotif, now int64) {
	if zone := req.Args[1]; zone != 0 {
		if err := inspect.WriteMemory(int(req.PID), zone, make([]byte, 8)); err != nil {
			n.answer(req.ID, unix.EFAULT)
			return
		}
	}
	if req.Args[0] == 0 {
		n.answer(req.ID, 0)
		return
	}
	n.tell(req, req.Args[0], now, microsecond)
}

func (n *notifier) time(req *seccompNotif, now int64) {
	if addr := req.Args[0]; addr != 0 {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], uint64(now/second))
		if inspect.WriteMemory(int(req.PID), addr, b[:]) != nil {
			n.answer(req.ID, unix.EFAULT)
			return
		}
	}
	n.send(&seccompResp{ID: req.ID, Val: now / second})
}

func (n *notifier) random(req *seccompNotif, p *inputProcess) {
	const known = unix.GRND_NONBLOCK | unix.GRND_RANDOM | unix.GRND_INSECURE
	if flags := req.Args[2]; flags&^known != 0 || flags&unix.GRND_RANDOM != 0 && flags&unix.GRND_INSECURE != 0 {
		n.answer(req.ID, unix.EINVAL)
		return
	}
	b := n.inputs.buf[:min(req.Args[1], maxFill)]
	if len(b) > 0 {
		p.source.Fill(n.inputs.place(req, p), b)
		if inspect.WriteMemory(int(req.PID), req.Args[0], b) != nil {
			n.answer(req.ID, unix.EFAULT)
			return
		}
	}
	n.send(&seccompResp{ID: req.ID, Val: int64(len(b))})
}

func errnoWriting(err error) unix.Errno {
	if err != nil {
		return unix.EFAULT
	}
	return 0
}

// waitFor lets a call go on that waits for a moment of the wall time, shifted to the kernel's: the call is made again with its
// timeout below the stack of its thread, where nobody keeps anything. What the program gave is not written to, for it may wait
// for the same moment again.
func (n *notifier) waitFor(req *seccompNotif, p *inputProcess) {
	at, arg, size := n.timeout(req)
	made, ok := n.inputs.shifted[int(req.PID)]
	delete(n.inputs.shifted, int(req.PID))
	behind := n.behind(req, p)
	if size == 0 || ok && made == at || behind == 0 {
		n.goOn(req.ID)
		return
	}
	b := make([]byte, size)
	if inspect.ReadMemory(int(req.PID), at, b) != nil || !shift(b[size-16:], behind) {
		n.goOn(req.ID) // which the kernel refuses, or answers at once
		return
	}
	err := n.divert(req, func(r *registers) {
		below := (r.stack() - belowStack) &^ 15
		if inspect.WriteMemory(int(req.PID), below, b) != nil {
			below = at
		}
		n.inputs.shifted[int(req.PID)] = below
		args := req.Args
		args[arg] = below
		r.call(req, uint64(req.Nr), args[0], args[1], args[2], args[3], args[4])
	})
	if err != nil {
		delete(n.inputs.shifted, int(req.PID))
	}
}

// behind is by how many ns the clock that a call waits for lies behind the kernel's.
func (n *notifier) behind(req *seccompNotif, p *inputProcess) int64 {
	switch {
	case req.Nr == unix.SYS_FUTEX && (req.Args[1]&futexRealtime != 0 || req.Args[1]&futexCommand == futexLockPI),
		req.Nr == unix.SYS_MQ_TIMEDSEND, req.Nr == unix.SYS_MQ_TIMEDRECEIVE,
		req.Nr == unix.SYS_TIMER_SETTIME, // of the wall time alone
		req.Nr == unix.SYS_CLOCK_NANOSLEEP && int32(req.Args[0]) == unix.CLOCK_REALTIME,
		req.Nr == unix.SYS_TIMERFD_SETTIME && n.timerClock(req) == unix.CLOCK_REALTIME:
		return p.source.Behind()
	case p.ticks:
		return p.source.TickBehind()
	}
	return 0
}

// belowStack is beyond the 128 bytes below its stack that a function may use on x86, by the size of a timeout and some.
const belowStack = 128 + 64

// timeout says where the timeout of a wait lies, in which argument, and how long it is: a struct timespec, or an itimerspec that
// ends with it. The size is 0 where it waits for no clock that is answered.
func (n *notifier) timeout(req *seccompNotif) (at uint64, arg, size int) {
	switch req.Nr {
	case unix.SYS_FUTEX:
		arg, size = 3, 16
	case unix.SYS_CLOCK_NANOSLEEP:
		arg, size = 2, 16
		if c := int32(req.Args[0]); c != unix.CLOCK_REALTIME && c != unix.CLOCK_MONOTONIC {
			size = 0
		}
	case unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE:
		arg, size = 4, 16
	case unix.SYS_TIMER_SETTIME:
		arg, size = 2, 32
		if !n.timerOfWallTime(req) {
			size = 0
		}
	default:
		arg, size = 2, 32
		if n.timerClock(req) < 0 {
			size = 0
		}
	}
	if req.Args[arg] == 0 {
		size = 0
	}
	return req.Args[arg], arg, size
}

// timerClock is the clock of the timer of a timerfd_settime; -1 for one that is not answered.
func (n *notifier) timerClock(req *seccompNotif) int {
	name := strconv.Itoa(int(req.PID)) + "/fdinfo/" + strconv.Itoa(int(int32(req.Args[0])))
	fd, err := unix.Openat(n.spawns.view.Proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	var b [512]byte
	k, _ := unix.Read(fd, b[:])
	for _, c := range []int{unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC} {
		if bytes.Contains(b[:max(k, 0)], fmt.Appendf(nil, "\nclockid: %d\n", c)) {
			return c
		}
	}
	return -1
}

// timerOfWallTime reports it of the timer of a timer_settime; true where this kernel does not list timers.
func (n *notifier) timerOfWallTime(req *seccompNotif) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(int(req.PID)) + "/timers")
	if err != nil {
		return true
	}
	_, timer, _ := bytes.Cut(append([]byte("\n"), b...), []byte("\nID: "+strconv.Itoa(int(int32(req.Args[0])))+"\n"))
	timer, _, _ = bytes.Cut(timer, []byte("\nID: "))
	return bytes.Contains(timer, []byte("ClockID: 0\n"))
}

// shift moves a struct timespec by ns. It is false for none, and for the zero that disarms a timer.
func shift(b []byte, ns int64) bool {
	sec, nsec := int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
	if sec < 0 || nsec < 0 || nsec >= second || sec == 0 && nsec == 0 || sec > 1<<33 {
		return false
	}
	at := sec*second + nsec + ns
	binary.NativeEndian.PutUint64(b, uint64(at/second))
	binary.NativeEndian.PutUint64(b[8:], uint64(at%second))
	return true
}

// of returns the process of a thread. It is nil before the program's execve, and for a thread that is gone.
func (in *inputs) of(task int) *inputProcess {
	in.mu.Lock()
	defer in.unlock()
	return in.find(task, 0)
}

// known returns the process that a thread is of; nil for one that has asked for nothing since its fork.
func (in *inputs) known(task int) *inputProcess {
	in.mu.Lock()
	defer in.mu.Unlock()
	if p := in.tasks[task]; p != nil && p.pid == task {
		return p
	}
	f, err := in.familyOf(task)
	if err != nil {
		return nil
	}
	return in.tasks[f.process]
}

// maxForks bounds how many processes in a row are looked for that have forked each other and executed nothing.
const maxForks = 64

func (in *inputs) find(task, depth int) *inputProcess {
	if p := in.tasks[task]; p != nil || in.program == nil || depth > maxForks {
		return p
	}
	f, err := in.familyOf(task)
	if err != nil {
		return nil
	}
	if p := in.tasks[f.process]; p != nil {
		return in.thread(p, task, f)
	}
	parent := in.parentOf(f, depth)
	p := &inputProcess{pid: f.process, forker: parent.source, shares: parent.shares, ticks: parent.ticks}
	p.source = in.to.Started(&Program{Parent: p.forker, Forked: true, PID: f.inside, Host: f.process, OwnTicks: !p.ticks})
	in.add(p, f.process)
	if task != f.process {
		in.add(p, task)
	}
	fd, err := unix.PidfdOpen(f.process, 0)
	in.followEnd(p, fd, err)
	return p
}

// thread returns what answers a thread of p that asks for the first time.
func (in *inputs) thread(p *inputProcess, task int, f family) *inputProcess {
	if p.shares == allThreads || f.number == f.inside {
		in.add(p, task)
		return p
	}
	t := p.rest
	if t == nil {
		t = &inputProcess{pid: f.process, shares: p.shares, ticks: p.ticks}
		is := &Program{Parent: p.source, Forked: true, PID: f.number, Host: task, OwnTicks: !p.ticks}
		if p.shares == otherThreads {
			p.rest, is.PID = t, 0 // which of them asks first says nothing
		}
		t.source = in.to.Started(is)
		p.others = append(p.others, t)
	}
	in.tasks[task] = t
	p.tasks = append(p.tasks, task)
	return t
}

// sharing says which threads of a process have one source, so that what runs side by side does not take the times of each other.
type sharing int

const (
	otherThreads sharing = iota // all but the first one, which keeps to its work: an event loop, main
	noThreads                   // each has its own: work stays in the thread that it began in
	allThreads                  // one for all: the first moves between threads as any other work does
)

// sharingOf tells it of the program that a process has just become, and whether its monotonic clock is answered. It is not where a
// runtime reads that all the time: in Go, and in what brings a large one with it, Node say.
func (in *inputs) sharingOf(pid int, path string) (s sharing, ticks bool) {
	name := filepath.Base(path)
	for _, of := range []string{"python", "pypy", "ruby"} {
		if strings.HasPrefix(name, of) {
			return noThreads, true
		}
	}
	isGo, size := in.executable(pid)
	if isGo {
		return allThreads, false
	}
	return otherThreads, size < largeProgram && !slices.Contains(largeElsewhere, name)
}

// largeProgram is the length of an executable file from which on it is taken for a runtime, in bytes: those of Node, Deno and Bun have
// some 100 MB, those of the system's commands less than one. Of largeElsewhere it is small, and a library large.
const largeProgram = 12 << 20

var largeElsewhere = []string{"java", "dotnet", "julia", "beam.smp"}

// executable tells of the file that a process runs whether Go's linker made it, which leaves a note within its first pages, and its length.
func (in *inputs) executable(pid int) (isGo bool, size int64) {
	fd, err := unix.Openat(in.spawns.view.Proc, strconv.Itoa(pid)+"/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, 0
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	n, err := unix.Pread(fd, in.status[:], 0)
	if err != nil || unix.Fstat(fd, &st) != nil {
		return false, 0
	}
	return bytes.Contains(in.status[:n], []byte("\x04\x00\x00\x00Go\x00\x00")), st.Size
}

// parentOf is the jail's program for what was left by its own parent.
func (in *inputs) parentOf(f family, depth int) *inputProcess {
	if f.parent != in.spawns.init && f.parent > 1 {
		if p := in.find(f.parent, depth+1); p != nil {
			return p
		}
	}
	return in.program
}

func (in *inputs) add(p *inputProcess, task int) {
	in.tasks[task] = p
	p.tasks = append(p.tasks, task)
}

// follows makes a thread one that is followed; false where it is one already: a program that is looked for along PATH is executed
// again before the failure of the first try was seen.
func (in *inputs) follows(task int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	was := in.followed[task]
	in.followed[task] = true
	return !was
}

// unfollow is called while the thread stands still, or is gone.
func (in *inputs) unfollow(task int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.followed, task)
}

// familyAt is familyOf for who does not have the mutex.
func (in *inputs) familyAt(task int) (family, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.familyOf(task)
}

// started is told that a process has become another program, which p describes but for who it was before. It takes over pidfd.
func (in *inputs) started(f family, p *Program, pidfd int) *inputProcess {
	in.mu.Lock()
	defer in.unlock()
	is := in.tasks[f.process]
	switch {
	case is != nil && is.forker != nil: // whether a fork asks for something before it executes must change nothing
		p.Parent = is.forker
	case is != nil:
		p.Parent = is.source
	case in.program != nil:
		p.Parent = in.parentOf(f, 0).source
	}
	known := is != nil
	if known {
		in.over(is, Ended{Again: true})
		unix.Close(pidfd)
	} else {
		is = new(inputProcess)
	}
	p.PID, p.Host = f.inside, f.process
	shares, ticks := in.sharingOf(f.process, p.Path)
	p.OwnTicks = !ticks
	*is = inputProcess{pid: f.process, source: in.to.Started(p), shares: shares, ticks: ticks}
	in.add(is, f.process)
	if !known {
		in.followEnd(is, pidfd, nil)
	}
	if in.program == nil {
		in.program = is
		in.begins()
	}
	return is
}

// followEnd has the end of p told, and p forgotten then. It takes over pidfd, where err is nil.
func (in *inputs) followEnd(p *inputProcess, pidfd int, err error) {
	if err == nil {
		err = in.spawns.ends.add(p.pid, pidfd, func(e Ended) {
			in.mu.Lock()
			defer in.unlock()
			in.over(p, e)
		})
	}
	if err != nil { // there are too many; it may live
		in.tell(p, Ended{})
	}
}

// over is told that p is no more what it was, and its threads are no more.
func (in *inputs) over(p *inputProcess, e Ended) {
	for _, task := range p.tasks {
		if is := in.tasks[task]; is == p || slices.Contains(p.others, is) {
			delete(in.tasks, task)
		}
	}
	for _, t := range p.others {
		in.tell(t, Ended{})
	}
	in.tell(p, e)
}

// An outcome is how the process of a source has ended.
type outcome struct {
	of  Source
	how Ended
}

// tell has the outcome of p told, once.
func (in *inputs) tell(p *inputProcess, e Ended) {
	if !p.told {
		p.told = true
		in.outcomes = append(in.outcomes, outcome{p.source, e})
	}
}

// unlock lets go of the mutex, and tells outcomes, which may take a while.
func (in *inputs) unlock() {
	list := in.outcomes
	in.outcomes = nil
	in.mu.Unlock()
	for _, o := range list {
		in.to.Ended(o.of, o.how)
	}
}

// A family is what /proc says of a thread: its process, the parent of that, and the numbers of both inside.
type family struct{ process, parent, inside, number int }

func (in *inputs) familyOf(task int) (f family, err error) {
	fd, err := unix.Openat(in.spawns.view.Proc, strconv.Itoa(task)+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return f, err
	}
	defer unix.Close(fd)
	k, err := unix.Read(fd, in.status[:])
	if err != nil {
		return f, err
	}
	for line := range bytes.Lines(in.status[:k]) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		words := bytes.Fields(value)
		if len(words) == 0 {
			continue
		}
		last, _ := strconv.Atoi(string(words[len(words)-1]))
		switch string(name) {
		case "Tgid":
			f.process = last
		case "PPid":
			f.parent = last
		case "NStgid":
			f.inside = last
		case "NSpid":
			f.number = last
			return f, nil
		}
	}
	return f, unix.ESRCH
}
