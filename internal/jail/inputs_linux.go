package jail

import (
	"bytes"
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

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// inputs answers what processes ask the kernel for that no two runs would get alike.
type inputs struct {
	to     Inputs
	spawns *spawns
	begins func() // called while the jail's program stands before its first instruction

	mu      sync.Mutex
	tasks   map[int]*inputProcess // by thread
	program *inputProcess         // the jail's; nil before its execve
	status  [4096]byte            // of /proc

	executing sync.WaitGroup // goroutines that follow an execve
	untraced  atomic.Int64   // programs whose clock could not be taken, for they are debugged
	followed  map[int]bool   // threads whose execve is being followed
	shifted   map[int]uint64 // where the timeout of threads lies that are to make their call again; the notifier's alone
	buf       [maxFill]byte  // the same
}

// An inputProcess is one process as its inputs know it: since an execve, or since its fork.
type inputProcess struct {
	pid    int
	source Source
	forker Source // of the process that forked it; nil once it has executed something
	shares sharing
	tasks  []int
	others []*inputProcess // of its threads that have sources of their own
	rest   *inputProcess   // of others, the one of all threads but the first; nil for none yet
	ended  chan Ended      // of its Program; nil once that was told
}

// maxFill is how many bytes one getrandom is given at most. Whoever wants more asks again, as it does after a signal.
const maxFill = 64 << 10

// Clocks of clock_gettime that tell the wall time, from linux/time.h.
const (
	clockRealtime       = unix.CLOCK_REALTIME
	clockRealtimeCoarse = unix.CLOCK_REALTIME_COARSE
)

// inputRules notify the calls that inputs answers. waits adds those that wait for a moment of the wall time.
func inputRules(waits bool) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLOCK_GETTIME, SkipTrue: 5},
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: clockRealtime, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: clockRealtimeCoarse, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow},
		bpf.RetConstant{Val: retNotify},
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
	if waits {
		p = append(p, whenBits(unix.SYS_FUTEX, dataArg1, futexRealtime, retNotify, retAllow)...)
		p = append(p, whenBits(unix.SYS_CLOCK_NANOSLEEP, dataArg1, unix.TIMER_ABSTIME, retNotify, retAllow)...)
		p = append(p, whenBits(unix.SYS_TIMERFD_SETTIME, dataArg1, unix.TFD_TIMER_ABSTIME, retNotify, retAllow)...)
	}
	return p
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

const futexRealtime = 256 // FUTEX_CLOCK_REALTIME of linux/futex.h

// newInputs needs what finds out about spawns.
func newInputs(to Inputs, s *spawns, begins func()) *inputs {
	return &inputs{to: to, spawns: s, begins: begins, tasks: make(map[int]*inputProcess), followed: make(map[int]bool), shifted: make(map[int]uint64)}
}

// isInput reports whether a call is one of inputRules.
func isInput(nr int32) bool {
	switch nr {
	case unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_FUTEX, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_TIMERFD_SETTIME:
		return true
	}
	return nr == sysTime
}

// input answers one call. Before the program's execve, and where nothing can be found out about processes, the kernel does.
func (n *notifier) input(req *seccompNotif) {
	p := n.inputs.of(int(req.PID))
	if p == nil {
		n.goOn(req.ID)
		return
	}
	switch req.Nr {
	case unix.SYS_CLOCK_GETTIME:
		n.tell(req, req.Args[1], p.source.Now(), 1)
	case unix.SYS_GETTIMEOFDAY:
		n.timeOfDay(req, p.source.Now())
	case unix.SYS_GETRANDOM:
		n.random(req, p)
	case unix.SYS_FUTEX, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_TIMERFD_SETTIME:
		n.waitFor(req, p)
	default:
		n.time(req, p.source.Now())
	}
}

// open gives whoever opens a random device a pipe of its own that the recorder fills.
func (n *notifier) open(req *seccompNotif, path uint64, flags uint32) {
	text, err := n.spawns.text.path(int(req.PID), path)
	if err == nil {
		n.inputs.to.Reads(text)
	}
	if err == nil && text == kernelUUID && n.openUUID(req, flags) {
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

// kernelUUID is a file that holds another UUID for each who reads it.
const kernelUUID = "/proc/sys/kernel/random/uuid"

// openUUID gives whoever opens it a file of its own, and reports whether it did.
func (n *notifier) openUUID(req *seccompNotif, flags uint32) bool {
	p := n.inputs.of(int(req.PID))
	fd, err := unix.MemfdCreate("uuid", unix.MFD_CLOEXEC)
	if p == nil || err != nil {
		return false
	}
	defer unix.Close(fd)
	var b [16]byte
	p.source.Opened().Fill(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4 of RFC 9562
	text := fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	if _, err := unix.Write(fd, text); err != nil {
		return false
	}
	_, err = unix.Seek(fd, 0, io.SeekStart)
	return err == nil && n.sendFD(req.ID, fd, int(flags&unix.O_CLOEXEC)) == nil
}

// filler reads random bytes.
type filler struct{ Filler }

func (f filler) piece() []byte {
	b := make([]byte, pageSize)
	f.Fill(b)
	return b
}

// Read implements io.Reader.
func (f filler) Read(b []byte) (int, error) {
	f.Fill(b)
	return len(b), nil
}

// sendFD makes the call return a descriptor that stands for fd.
func (n *notifier) sendFD(id uint64, fd, flags int) error {
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
	n.answer(req.ID, errnoWriting(writeMemory(int(req.PID), addr, b[:])))
}

func (n *notifier) timeOfDay(req *seccompNotif, now int64) {
	if zone := req.Args[1]; zone != 0 {
		if err := writeMemory(int(req.PID), zone, make([]byte, 8)); err != nil {
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
		if writeMemory(int(req.PID), addr, b[:]) != nil {
			n.answer(req.ID, unix.EFAULT)
			return
		}
	}
	n.send(&seccompResp{ID: req.ID, Val: now / second})
}

func (n *notifier) random(req *seccompNotif, p *inputProcess) {
	const known = unix.GRND_NONBLOCK | unix.GRND_RANDOM | unix.GRND_INSECURE
	if req.Args[2]&^known != 0 {
		n.answer(req.ID, unix.EINVAL)
		return
	}
	b := n.inputs.buf[:min(req.Args[1], maxFill)]
	if len(b) > 0 {
		p.source.Fill(b)
		if writeMemory(int(req.PID), req.Args[0], b) != nil {
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
	behind := p.source.Behind()
	if size == 0 || ok && made == at || behind == 0 {
		n.goOn(req.ID)
		return
	}
	b := make([]byte, size)
	if readMemory(int(req.PID), at, b) != nil || !shift(b[size-16:], behind) {
		n.goOn(req.ID) // which the kernel refuses, or answers at once
		return
	}
	err := n.divert(req, func(r *registers) {
		below := (r.stack() - belowStack) &^ 15
		if writeMemory(int(req.PID), below, b) != nil {
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

// belowStack is beyond the 128 bytes below its stack that a function may use on x86, by the size of a timeout and some.
const belowStack = 128 + 64

// timeout says where the timeout of a wait lies, in which argument, and how long it is: a struct timespec, or an itimerspec that
// ends with it. The size is 0 where it does not wait for the wall time.
func (n *notifier) timeout(req *seccompNotif) (at uint64, arg, size int) {
	switch req.Nr {
	case unix.SYS_FUTEX:
		arg, size = 3, 16
	case unix.SYS_CLOCK_NANOSLEEP:
		arg, size = 2, 16
		if int32(req.Args[0]) != clockRealtime {
			size = 0
		}
	default:
		arg, size = 2, 32
		if !n.ofWallTime(req) {
			size = 0
		}
	}
	if req.Args[arg] == 0 {
		size = 0
	}
	return req.Args[arg], arg, size
}

// ofWallTime reports whether the timer of a timerfd_settime follows the wall time.
func (n *notifier) ofWallTime(req *seccompNotif) bool {
	name := strconv.Itoa(int(req.PID)) + "/fdinfo/" + strconv.Itoa(int(int32(req.Args[0])))
	fd, err := unix.Openat(n.spawns.view.proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var b [512]byte
	k, err := unix.Read(fd, b[:])
	return err == nil && bytes.Contains(b[:k], []byte("\nclockid: 0\n"))
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
	defer in.mu.Unlock()
	return in.find(task, 0)
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
	p := &inputProcess{pid: f.process, ended: make(chan Ended, 1), forker: in.parentOf(f, depth).source}
	p.source = in.to.Started(&Program{
		Parent: p.forker, Forked: true, PID: f.inside, Host: f.process, Ended: p.ended,
	})
	in.add(p, f.process)
	if task != f.process {
		in.add(p, task)
	}
	in.followEnd(p)
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
		t = &inputProcess{pid: f.process, ended: make(chan Ended, 1)}
		is := &Program{Parent: p.source, Forked: true, PID: f.number, Host: task, Ended: t.ended}
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

// sharingOf tells it of the program that a process has just become.
func (in *inputs) sharingOf(pid int, path string) sharing {
	name := filepath.Base(path)
	for _, of := range []string{"python", "pypy", "ruby"} {
		if strings.HasPrefix(name, of) {
			return noThreads
		}
	}
	if in.isGo(pid) {
		return allThreads
	}
	return otherThreads
}

// isGo reports whether a process runs a program that Go's linker made: it has a note of it within its first pages.
func (in *inputs) isGo(pid int) bool {
	fd, err := unix.Openat(in.spawns.view.proc, strconv.Itoa(pid)+"/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, in.status[:], 0)
	return err == nil && bytes.Contains(in.status[:n], []byte("\x04\x00\x00\x00Go\x00\x00"))
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

// processOf tells the process of a thread; 0 where it is gone.
func (in *inputs) processOf(task int) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	f, _ := in.familyOf(task)
	return f.process
}

// forget is told that the threads of p are no more.
func (in *inputs) forget(p *inputProcess) {
	for _, task := range p.tasks {
		if is := in.tasks[task]; is == p || slices.Contains(p.others, is) {
			delete(in.tasks, task)
		}
	}
	for _, t := range p.others {
		t.ended <- Ended{}
	}
	p.tasks, p.others, p.rest = p.tasks[:0], nil, nil
}

// started is told that the process task has become another program, which p describes but for who it was before.
func (in *inputs) started(task int, p *Program) (Source, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	f, err := in.familyOf(task)
	if err != nil {
		return nil, err
	}
	was := in.tasks[f.process]
	switch {
	case was != nil && was.forker != nil: // whether a fork asks for something before it executes must change nothing
		p.Parent = was.forker
	case was != nil:
		p.Parent = was.source
	case in.program != nil:
		p.Parent = in.parentOf(f, 0).source
	}
	ended := make(chan Ended, 1)
	p.PID, p.Host, p.Ended = f.inside, f.process, ended
	is := was
	if was == nil {
		is = &inputProcess{pid: f.process}
	}
	in.forget(is)
	if is.ended != nil {
		is.ended <- Ended{Again: true}
	}
	is.source, is.ended, is.forker, is.shares = in.to.Started(p), ended, nil, in.sharingOf(f.process, p.Path)
	in.add(is, f.process)
	if in.program == nil {
		in.program = is
		in.begins()
	}
	if was == nil {
		in.followEnd(is)
	}
	return is.source, nil
}

// followEnd has the end of p told, and p forgotten then.
func (in *inputs) followEnd(p *inputProcess) {
	over := func(e Ended) {
		in.forget(p)
		if p.ended != nil {
			p.ended <- e
			p.ended = nil
		}
	}
	sp, err := in.opened(p.pid)
	if err != nil {
		over(Ended{})
		in.add(p, p.pid) // it may live
		return
	}
	sp.wait(in.spawns)
	in.spawns.ends.Go(func() {
		e := <-sp.end
		in.mu.Lock()
		defer in.mu.Unlock()
		over(e)
	})
}

func (in *inputs) opened(pid int) (*spawnProcess, error) {
	if in.spawns.full() {
		return nil, errTooMany
	}
	return in.spawns.newProcess(pid, pid)
}

// A family is what /proc says of a thread: its process, the parent of that, and the numbers of both inside.
type family struct{ process, parent, inside, number int }

func (in *inputs) familyOf(task int) (f family, err error) {
	fd, err := unix.Openat(in.spawns.view.proc, strconv.Itoa(task)+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
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
