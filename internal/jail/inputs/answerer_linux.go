package inputs

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/unwind"
	"golang.org/x/sys/unix"
)

// An Answerer answers what processes ask the kernel for. Only who receives calls uses it, but for what the table's lock guards.
type Answerer struct {
	to     Sources
	table  *process.Table
	begins func() // called while the jail's program stands before its first instruction
	plan   *mount.Plan
	holds  bool // a signal leaves a call alone that is being answered

	openDir func(path string) (*os.File, error) // as the jail's init opens one
	layers  map[string]*os.File                 // of overlays, by path; nil for one that cannot be opened

	patching sync.Mutex // guards patches
	patches  map[programFile]*goProgram
	names    map[programFile]*unwind.Names // for who receives calls; nil for one that is not understood

	Untraced atomic.Int64 // programs whose clock could not be taken, for they are debugged

	program  *process.Process // the jail's; nil before its execve
	outcomes []outcome        // to be told by who has the lock

	text inspect.TextReader
	buf  [maxFill]byte

	held    sync.WaitGroup  // processes whose end is held up
	letGo   context.Context // done when none is any more
	release context.CancelFunc
}

// New answers the processes of t in a world of a plan, whose directories openDir opens.
func New(to Sources, t *process.Table, begins func(), plan *mount.Plan, openDir func(path string) (*os.File, error)) *Answerer {
	in := &Answerer{to: to, table: t, begins: begins, plan: plan, holds: filter.Holds(), openDir: openDir, layers: make(map[string]*os.File), patches: make(map[programFile]*goProgram), names: make(map[programFile]*unwind.Names)}
	in.letGo, in.release = context.WithCancel(context.Background())
	return in
}

// Close lets all processes end whose end is held up. It is called once nothing is received any more.
func (in *Answerer) Close() {
	in.release()
	in.held.Wait()
	for _, dir := range in.layers {
		dir.Close()
	}
}

// Answer answers a call, and reports whether it was one of Rules; the name that another one makes may be changed by then. Before the program's
// execve, and where nothing can be found out about processes, the kernel answers.
func (in *Answerer) Answer(c *notify.Call) bool {
	if path, flags, ok := opened(c); ok {
		in.open(c, path, flags)
		return true
	}
	if dirfd, path, ok := looked(c); ok {
		in.looks(c, dirfd, path)
		return true
	}
	switch c.Nr {
	case unix.SYS_BIND:
		return connect.Bind(c, func() process.Source { return in.SourceOf(c.Task) })
	case unix.SYS_EXIT_GROUP, unix.SYS_CLOSE:
		in.leave(c)
		return true
	case unix.SYS_MMAP:
		in.library(c)
		return true
	case unix.SYS_CLONE, unix.SYS_CLONE3:
		in.makes(c)
		return true
	case unix.SYS_SET_ROBUST_LIST:
		in.forks(c)
		return true
	case unix.SYS_SENDTO:
		in.wakes(c)
		return true
	}
	answer := answers[c.Nr]
	if answer == nil {
		in.nameAnew(c)
		return false
	}
	if p := in.of(c.Task); p != nil {
		answer(in, c, p)
	} else {
		c.GoOn()
	}
	return true
}

// leave lets a process leave its standard input, or end, once its source says so. What has only forked, and asked for nothing, is nobody of
// whom anything is known.
func (in *Answerer) leave(c *notify.Call) {
	p := in.known(c.Task)
	if p == nil {
		c.GoOn()
		return
	}
	var wait func(context.Context) syscall.Signal
	if c.Nr == unix.SYS_EXIT_GROUP {
		wait = p.Source.Ending(process.Exit{Code: int(c.Args[0] & 0xff)}, func() ([]process.Source, bool) { return in.readers(p) })
	}
	leaves := p.Source.Leaving(func() []process.Source { return in.feeders(p.Process) })
	if wait == nil && leaves == nil {
		c.GoOn()
		return
	}
	in.held.Go(func() {
		if leaves != nil {
			leaves(in.letGo)
		}
		if wait != nil {
			if by := wait(in.letGo); by != 0 {
				_ = p.Process.Signal(by) // it ends in any case
			}
		}
		c.GoOn()
	})
}

// feeders are the processes whose output is the pipe that p reads from; none where another reads from it too.
func (in *Answerer) feeders(p *process.Process) []process.Source {
	if len(in.at(in.pipeOf(p, 0), p, 0)) > 0 {
		return nil
	}
	return in.at(in.pipeOf(p, 0), p, 1, 2)
}

// readers are those that read from the pipe that p writes to, where it is one.
func (in *Answerer) readers(p *process.Asker) (all []process.Source, piped bool) {
	pipe := cmp.Or(in.pipeOf(p.Process, 1), p.Output)
	return in.at(pipe, p.Process, 0), pipe != ""
}

// at are the processes but p that have a pipe as one of their descriptors fds, or had it as their output and closed it.
func (in *Answerer) at(pipe string, p *process.Process, fds ...int) (all []process.Source) {
	if pipe == "" {
		return nil
	}
	in.table.Lock()
	defer in.table.Unlock()
	for q := range in.table.All() {
		if q != p && q.Asker != nil && slices.ContainsFunc(fds, func(fd int) bool { return in.pipeOf(q, fd) == pipe || fd == 1 && q.Asker.Output == pipe }) {
			all = append(all, q.Asker.Source)
		}
	}
	return all
}

// pipeOf names the pipe that a process has as a descriptor; "" where that is something else.
func (in *Answerer) pipeOf(p *process.Process, fd int) string {
	var buf [64]byte
	n, err := unix.Readlinkat(in.table.View.Proc, fmt.Sprintf("%d/fd/%d", p.PID, fd), buf[:])
	if name := string(buf[:max(n, 0)]); err == nil && strings.HasPrefix(name, "pipe:") {
		return name
	}
	return ""
}

// SourceOf is what answers a thread; nil where the kernel does.
func (in *Answerer) SourceOf(task int) process.Source {
	if p := in.of(task); p != nil {
		return p.Source
	}
	return nil
}

// of returns who asks in a thread. It is nil before the program's execve, and for a thread that is gone.
func (in *Answerer) of(task int) *process.Asker {
	in.table.Lock()
	defer in.unlock()
	return in.find(task, 0)
}

// known returns the process that a thread is of; nil for one that has asked for nothing since its fork.
func (in *Answerer) known(task int) *process.Asker {
	in.table.Lock()
	defer in.table.Unlock()
	p := in.table.Known(task)
	if p == nil {
		if is, err := in.table.Status(task); err == nil {
			p = in.table.Known(is.Process)
		}
	}
	if p == nil {
		return nil
	}
	return p.Asker
}

// maxForks bounds how many processes in a row are looked for that have forked each other and executed nothing.
const maxForks = 64

func (in *Answerer) find(task, depth int) *process.Asker {
	if th := in.table.Thread(task); th != nil && th.Asker != nil {
		return th.Asker
	}
	if in.program == nil || depth > maxForks {
		return nil
	}
	is, err := in.table.Status(task)
	if err != nil {
		return nil
	}
	if p := in.table.Known(is.Process); p != nil && p.Asker != nil {
		return in.thread(p, task, is)
	}
	parent := in.parentOf(is, depth)
	forked := &process.Program{Parent: parent.Source, Forked: true, Before: in.before(is), PID: is.Inside, Host: is.Process, OwnTicks: !parent.Ticks}
	a := in.begin(in.hold(is.Process), forked, process.Life{Forker: parent.Source, Nth: in.forker(parent, is), Sharing: parent.Process.Sharing})
	if task != is.Process {
		in.table.Add(a, task)
	}
	return a
}

// before counts the living children that the first thread of a process's parent had made before it and that are not known yet.
func (in *Answerer) before(is process.Status) (n int) {
	for _, child := range in.table.Children(is.Parent, is.Parent) {
		if child == is.Process {
			return n
		}
		if p := in.table.Known(child); p == nil || p.Asker == nil {
			n++
		}
	}
	return 0
}

// hold opens a process. One of those that are too many is not in the table, and may live when it is said to have ended.
func (in *Answerer) hold(pid int) *process.Process {
	p, err := in.table.Open(pid)
	if err != nil {
		return &process.Process{PID: pid}
	}
	return p
}

// begin has a Source answer a process from now on, as which is describes it.
func (in *Answerer) begin(p *process.Process, which *process.Program, life process.Life) *process.Asker {
	first := p.Asker == nil
	life.Asker = &process.Asker{Process: p, Output: in.pipeOf(p, 1), Ticks: !which.OwnTicks, Source: in.to.Started(which)}
	in.table.Begin(p, life)
	in.table.Add(life.Asker, p.PID)
	switch {
	case !p.Held():
		in.tell(life.Asker, process.Ended{})
	case first:
		in.table.OnEnd(p, func(e process.Ended) {
			in.table.Lock()
			defer in.unlock()
			in.over(p, e)
		})
	}
	return life.Asker
}

// thread returns who asks in a thread of p that asks for the first time.
func (in *Answerer) thread(p *process.Process, task int, is process.Status) *process.Asker {
	a := p.Asker
	if p.Sharing != process.AllThreads && is.Number != is.Inside {
		a = in.besides(p, task, is)
	}
	in.table.Add(a, task)
	return a
}

// forker tells which thread of a process has forked another one, where its threads are told apart.
func (in *Answerer) forker(parent *process.Asker, is process.Status) uint64 {
	if parent.Process.Sharing != process.NoThreads || is.Parent != parent.Process.PID {
		return 0
	}
	return in.table.NthOf(parent.Process, is.Process)
}

// threads notify a thread that makes another one. The C library has blocked all signals by then.
func threads() []filter.Rule {
	return []filter.Rule{
		{Nr: unix.SYS_CLONE, When: [][]filter.Condition{{filter.Bits(0, unix.CLONE_THREAD)}}, Then: filter.Notify, Else: filter.Allow},
		{Nr: unix.SYS_CLONE3, Then: filter.Notify},
	}
}

// makes notes which thread makes another one, where threads are told apart.
func (in *Answerer) makes(c *notify.Call) {
	defer c.GoOn()
	flags, at := c.Args[0], c.Args[2]
	if c.Nr == unix.SYS_CLONE3 {
		var args struct{ Flags, PIDFD, ChildTID, ParentTID uint64 }
		var b [32]byte
		if inspect.ReadMemory(c.Task, c.Args[0], b[:]) != nil {
			return
		}
		_, _ = binary.Decode(b[:], binary.NativeEndian, &args) // it has that size
		flags, at = args.Flags, args.ParentTID
	}
	if flags&unix.CLONE_THREAD == 0 || flags&unix.CLONE_PARENT_SETTID == 0 {
		return
	}
	in.table.Lock()
	defer in.unlock()
	is, err := in.table.Status(c.Task)
	if err != nil || in.find(is.Process, 0) == nil {
		return
	}
	if p := in.table.Known(is.Process); p != nil && p.Sharing == process.NoThreads {
		in.table.Makes(p, c.Task, at)
	}
}

// forks lets a thread begin, or a fork, once the Source of who made it says so, where threads are told apart. It is the C library's first call there.
func (in *Answerer) forks(c *notify.Call) {
	if by, thread := in.maker(c.Task); by != nil {
		if wait := by.Forking(c.Task, thread); wait != nil {
			in.held.Go(func() {
				wait(in.letGo)
				c.GoOn()
			})
			return
		}
	}
	c.GoOn()
}

// maker is the Source of the process that a task is a thread of, or that forked it and of which it has asked nothing yet, where threads are told apart; nil
// for none.
func (in *Answerer) maker(task int) (by process.Source, thread bool) {
	in.table.Lock()
	defer in.table.Unlock()
	is, err := in.table.Status(task)
	p := in.table.Known(is.Process)
	thread = is.Process != task
	switch {
	case err != nil, !thread && p != nil:
		return nil, thread
	case !thread:
		p = in.table.Known(is.Parent)
	}
	if p == nil || p.Asker == nil || p.Sharing != process.NoThreads {
		return nil, thread
	}
	return p.Asker.Source, thread
}

// wakes has a thread that tells another one to go on do first what it does behind that, where threads are told apart. An event loop of Python is
// told by a zero byte, never anything else, through a socket pair of its process that does not block; the sender lets go of the interpreter
// meanwhile, and which of the two has it next decides whether the loop finds a worker idle or makes another one. So the byte is sent once the
// sender rests.
func (in *Answerer) wakes(c *notify.Call) {
	var b [1]byte
	by, thread := in.maker(c.Task)
	if by == nil || !thread || inspect.ReadMemory(c.Task, c.Args[1], b[:]) != nil || b[0] != 0 {
		c.GoOn()
		return
	}
	wait := by.Waking()
	if wait == nil {
		c.GoOn()
		return
	}
	fd, err := in.pairOf(c)
	if err != nil {
		c.GoOn()
		return
	}
	c.Return(int64(len(b)))
	in.held.Go(func() {
		defer unix.Close(fd)
		wait(in.letGo)
		_ = unix.Sendto(fd, b[:], unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil) // one that is full has woken who reads from it
	})
}

// pairOf is the socket that a call names, as a descriptor of ours, if it does not block and the caller's process made it and the one at its other end.
func (in *Answerer) pairOf(c *notify.Call) (fd int, err error) {
	is, err := in.table.Status(c.Task)
	if err != nil {
		return -1, err
	}
	err = inspect.WithTask(strconv.Itoa(c.Task), func(task int) (err error) {
		fd, err = unix.PidfdGetfd(task, int(int32(c.Args[0])), 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if flags, e := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || e != nil || int(peer.Pid) != is.Process || flags&unix.O_NONBLOCK == 0 || !c.Waits() {
		unix.Close(fd)
		return -1, unix.ENOTSOCK
	}
	return fd, nil
}

// besides is who asks in another thread than the first.
func (in *Answerer) besides(p *process.Process, task int, is process.Status) *process.Asker {
	if p.Rest != nil {
		return p.Rest
	}
	which := &process.Program{Parent: p.Asker.Source, Forked: true, Thread: true, PID: is.Number, Host: task, OwnTicks: !p.Asker.Ticks}
	if p.Sharing == process.OtherThreads {
		which.PID = 0 // which of them asks first says nothing
	} else {
		which.Nth = in.table.Nth(p, task)
	}
	a := &process.Asker{Process: p, Ticks: p.Asker.Ticks, Source: in.to.Started(which)}
	if p.Sharing == process.OtherThreads {
		p.Rest = a
	}
	p.Others = append(p.Others, a)
	return a
}

// parentOf is the jail's program for what was left by its own parent.
func (in *Answerer) parentOf(is process.Status, depth int) *process.Asker {
	if is.Parent != in.table.Init && is.Parent > 1 {
		if p := in.find(is.Parent, depth+1); p != nil {
			return p
		}
	}
	return in.program.Asker
}

// started is told that a process has become another program, which which describes but for who it was before.
func (in *Answerer) started(p *process.Process, is process.Status, which *process.Program) *process.Asker {
	in.table.Settle() // whoever started it may have waited for another one before
	in.table.Lock()
	defer in.unlock()
	if in.program != nil {
		for _, child := range in.table.Children(is.Process, is.Process) { // is of who p was: whether it asked for something by now must change nothing
			in.find(child, 0)
		}
	}
	switch {
	case p.Asker != nil && p.Forker != nil: // whether a fork asks for something before it executes must change nothing
		which.Parent, which.Nth = p.Forker, p.Nth
	case p.Asker != nil:
		which.Parent = p.Asker.Source
	case in.program != nil:
		parent := in.parentOf(is, 0)
		which.Parent, which.Nth = parent.Source, in.forker(parent, is)
	}
	if p.Asker != nil {
		in.over(p, process.Ended{Again: true})
	}
	which.PID, which.Host = is.Inside, is.Process
	sharing, ticks := in.sharingOf(is.Process, which.Path)
	which.OwnTicks = !ticks
	a := in.begin(p, which, process.Life{Sharing: sharing})
	if in.program == nil {
		in.program = p
		in.begins()
	}
	return a
}

// over is told that p is no more what it was, and its threads are no more.
func (in *Answerer) over(p *process.Process, e process.Ended) {
	for _, a := range p.Others {
		in.tell(a, process.Ended{})
	}
	in.tell(p.Asker, e)
}

// An outcome is how the process of a source has ended.
type outcome struct {
	of  process.Source
	how process.Ended
}

// tell has the outcome of a told, once.
func (in *Answerer) tell(a *process.Asker, e process.Ended) {
	if !a.Over {
		a.Over = true
		in.outcomes = append(in.outcomes, outcome{a.Source, e})
	}
}

// unlock lets go of the lock, and tells outcomes, which may take a while.
func (in *Answerer) unlock() {
	list := in.outcomes
	in.outcomes = nil
	in.table.Unlock()
	for _, o := range list {
		in.to.Ended(o.of, o.how)
	}
}
