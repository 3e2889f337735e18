package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

// A Table knows the processes of one jail. Its methods, but for Unlock and those that say otherwise, are for who has its lock, and so are
// the fields of what it holds.
type Table struct {
	Init int          // PID of the jail's init
	View inspect.View // the jail's, as the init sees it, by the recorder's /proc

	epoll *os.File       // of the processes' descriptors, which are readable once they are gone
	left  sync.WaitGroup // processes that have not ended
	ends  sync.Mutex     // held while ends are told
	done  chan struct{}  // of the goroutine that waits for them
	calls callFiles

	sync.Mutex
	Most    int              // processes at once
	held    map[int]*Process // by descriptor
	alive   map[int]*Process // by PID
	threads map[int]*Thread
	over    bool // what lives is killed
}

// ErrTooMany is the error of Open where no more processes can be held.
var ErrTooMany = errors.New("too many processes at once")

// NewTable opens what it needs. Close ends the goroutine that waits for the ends of processes.
func NewTable(init int) (*Table, error) {
	t := &Table{Init: init, View: inspect.View{Root: -1, Proc: -1}, Most: ShareOfFiles(4096, 16), done: make(chan struct{}),
		held: make(map[int]*Process), alive: make(map[int]*Process), threads: make(map[int]*Thread), calls: make(callFiles)}
	err := t.open()
	if err != nil {
		t.closeFiles()
		return nil, err
	}
	go t.serve()
	return t, nil
}

func (t *Table) open() (err error) {
	if t.View.Proc, err = unix.Open("/proc", inspect.DirFlags, 0); err != nil {
		return &os.PathError{Op: "open", Path: "/proc", Err: err}
	}
	if t.View.Root, t.View.Text, err = inspect.RootOf(t.View.Proc, t.Init); err != nil {
		return &os.PathError{Op: "open", Path: "the root inside", Err: err}
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that os.File waits for it
		unix.Close(fd)
		return err
	}
	t.epoll = os.NewFile(uintptr(fd), "ends")
	return nil
}

// ShareOfFiles is one part in so many of the descriptors that the recorder may have, but no more than most.
func ShareOfFiles(most, parts uint64) int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		most = min(most, lim.Cur/parts)
	}
	return int(most)
}

// Close waits until all processes have ended, at the latest with the jail. It takes the lock itself.
func (t *Table) Close() {
	t.left.Wait()
	t.epoll.Close()
	<-t.done
	t.closeFiles()
}

func (t *Table) closeFiles() {
	t.calls.close()
	for _, fd := range []int{t.View.Proc, t.View.Root} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Status is StatusOf of a thread, without the lock.
func (t *Table) Status(task int) (Status, error) { return StatusOf(t.View.Proc, task) }

// Children lists what a thread of a process has forked and what lives, in the order in which it began; none where the kernel keeps no list.
func (t *Table) Children(pid, task int) (children []int) {
	var text [4096]byte
	n, _ := readFile(t.View.Proc, fmt.Sprintf("%d/task/%d/children", pid, task), text[:])
	whole := bytes.LastIndexByte(text[:n], ' ') + 1 // a number that is cut is another one
	for _, word := range bytes.Fields(text[:whole]) {
		child, _ := strconv.Atoi(string(word))
		children = append(children, child)
	}
	return children
}

// OpenFile opens a file of /proc that is of a process.
func (t *Table) OpenFile(pid int, name string) (*os.File, error) {
	fd, err := unix.Openat(t.View.Proc, strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// maxThreads bounds how many threads of a process are told apart.
const maxThreads = 1024

// Makes is told that a thread of p makes another one, whose number the kernel writes to an address. Each thread is known by the one that made it,
// and by which of that one's it is, from 1: whichever of two makes one first says nothing, nor does one that is gone before it asks for anything. The
// caller holds the lock.
func (t *Table) Makes(p *Process, task int, at uint64) {
	by := t.made(p, task)
	if by == nil || len(p.Made) >= maxThreads && p.Made[at] == nil {
		return
	}
	if p.Made == nil {
		p.Made = make(map[uint64]*Made)
	}
	by.makes++
	p.Made[at] = &Made{nth: by.nth<<16 | by.makes}
}

// made returns what is known of a thread; nil for nothing.
func (t *Table) made(p *Process, task int) *Made {
	if task == p.PID {
		return &p.first
	}
	is, err := t.Status(task)
	if err != nil {
		return nil
	}
	for at, m := range p.Made {
		var number [4]byte
		if inspect.ReadMemory(p.PID, at, number[:]) == nil && int(binary.NativeEndian.Uint32(number[:])) == is.Number {
			return m
		}
	}
	return nil
}

// Nth is which of p's threads one is. It is 0 for the first, and for one of which nothing is known. The caller holds the lock.
func (t *Table) Nth(p *Process, task int) uint64 {
	if m := t.made(p, task); m != nil {
		return m.nth
	}
	return 0
}

// NthOf is Nth of the thread that has forked a child.
func (t *Table) NthOf(p *Process, child int) uint64 {
	if len(p.Made) == 0 || slices.Contains(t.Children(p.PID, p.PID), child) { // as nearly all are
		return 0
	}
	dir, err := t.OpenFile(p.PID, "task")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxThreads)
	for _, name := range names {
		if task, _ := strconv.Atoi(name); slices.Contains(t.Children(p.PID, task), child) {
			return t.Nth(p, task)
		}
	}
	return 0
}

// Known returns the process of a number; nil for one that is not in the table.
func (t *Table) Known(pid int) *Process { return t.alive[pid] }

// All are the processes that live.
func (t *Table) All() iter.Seq[*Process] { return maps.Values(t.alive) }

// Open returns the process of a number, which is in the table from now on.
func (t *Table) Open(pid int) (*Process, error) {
	if p := t.alive[pid]; p != nil && !IsOver(p.fd, 0) { // else the number is another's
		return p, nil
	}
	if len(t.held) >= t.Most {
		return nil, ErrTooMany
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, fd: fd, file: os.NewFile(uintptr(fd), "process"), left: t.over}
	if err := t.watch(unix.EPOLL_CTL_ADD, fd); err != nil {
		p.file.Close()
		return nil, err
	}
	t.held[fd], t.alive[pid] = p, p
	t.left.Add(1)
	return p, nil
}

// OnEnd has told called, which must not block, when the process has ended.
func (t *Table) OnEnd(p *Process, told func(Ended)) {
	if p.end != nil {
		go told(*p.end)
		return
	}
	p.told = append(p.told, told)
}

// Thread returns what is known of a thread; nil for nothing.
func (t *Table) Thread(task int) *Thread { return t.threads[task] }

// Note returns the same for who is about to note something, which is not nil.
func (t *Table) Note(task int) *Thread {
	th := t.threads[task]
	if th == nil {
		th = new(Thread)
		t.threads[task] = th
	}
	return th
}

// Add has a thread of a's process ask as a.
func (t *Table) Add(a *Asker, task int) {
	t.Note(task).Asker = a
	a.Process.threads = append(a.Process.threads, task)
}

// Forget is told that nothing is noted of a thread any more but who asks.
func (t *Table) Forget(task int) {
	if th := t.threads[task]; th != nil && *th == (Thread{}) {
		delete(t.threads, task)
	}
}

// Begin gives a process another life.
func (t *Table) Begin(p *Process, life Life) {
	t.dropThreads(p)
	p.Life = life
}

func (t *Table) dropThreads(p *Process) {
	for _, task := range p.threads {
		if th := t.threads[task]; th != nil && th.Asker != nil && th.Asker.Process == p {
			th.Asker = nil
			t.Forget(task)
		}
	}
	p.threads = nil
}

// Killing is told, by who does not have the lock, that all that lives now is about to be killed, and whether it was stopped before.
func (t *Table) Killing(stopped bool) {
	t.Lock()
	defer t.Unlock()
	t.over = true
	var until time.Time
	if stopped {
		until = time.Now().Add(untilDead)
	}
	for _, p := range t.held {
		p.left = p.left || t.lives(p, until)
	}
}

func (t *Table) watch(op, pidfd int) error {
	return WithFD(t.epoll, func(fd int) error {
		return unix.EpollCtl(fd, op, pidfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pidfd)})
	})
}

// serve tells of ends. What it calls does not block.
func (t *Table) serve() {
	defer close(t.done)
	c, err := t.epoll.SyscallConn()
	if err != nil {
		return
	}
	for c.Read(t.settle) == nil {
	}
}

// Settle returns once all have been told of the processes that had ended by then, without the lock: what a process does after it has waited
// for another one comes behind the end of that.
func (t *Table) Settle() {
	_ = WithFD(t.epoll, func(fd int) error {
		t.settle(uintptr(fd))
		return nil
	})
}

// settle tells of ends, and reports whether there were any.
func (t *Table) settle(epoll uintptr) (some bool) {
	t.ends.Lock()
	defer t.ends.Unlock()
	var events [64]unix.EpollEvent
	for {
		n, _ := unix.EpollWait(int(epoll), events[:], 0)
		if n <= 0 {
			return some
		}
		for _, ev := range events[:n] {
			t.ended(int(ev.Fd))
		}
		some = true
	}
}

// ended is told that the process of a descriptor is gone.
func (t *Table) ended(fd int) {
	defer t.left.Done()
	p := t.take(fd)
	_ = t.watch(unix.EPOLL_CTL_DEL, fd) // there may be another descriptor of it
	how := t.how(p)
	t.Lock()
	how.Left = p.left
	p.end = &how
	list := p.told
	p.told = nil
	t.dropThreads(p)
	t.Unlock()
	for _, told := range list {
		told(how)
	}
	p.file.Close()
}

func (t *Table) take(fd int) *Process {
	t.Lock()
	defer t.Unlock()
	p := t.held[fd]
	delete(t.held, fd)
	if t.alive[p.PID] == p {
		delete(t.alive, p.PID)
	}
	return p
}

// A Status is what /proc says of a thread.
type Status struct {
	Process, Parent int // of it, as the recorder's PID namespace knows them
	Inside, Number  int // of its process and of itself, inside
	Descriptors     int // that its process has room for
}

// StatusOf reads that of a thread, by its number in proc. The error is ESRCH or ENOENT where there is none.
func StatusOf(proc, task int) (s Status, err error) {
	var text [2048]byte
	n, err := readFile(proc, strconv.Itoa(task)+"/status", text[:])
	if err != nil {
		return s, err
	}
	fields := map[string]*int{"Tgid": &s.Process, "PPid": &s.Parent, "FDSize": &s.Descriptors, "NStgid": &s.Inside, "NSpid": &s.Number}
	for line := range bytes.Lines(text[:n]) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		words := bytes.Fields(value)
		if to := fields[string(name)]; to != nil && len(words) > 0 {
			*to, _ = strconv.Atoi(string(words[len(words)-1])) // of a list the last: the innermost namespace's
			if delete(fields, string(name)); len(fields) == 0 {
				return s, nil
			}
		}
	}
	return s, unix.ESRCH
}

// readFile reads the beginning of a file of proc.
func readFile(proc int, name string, b []byte) (int, error) {
	fd, err := unix.Openat(proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b)
	return max(n, 0), err
}

// StackOf is the stack pointer of a thread that stands in a system call. It is for one goroutine at a time, with or without the lock.
func (t *Table) StackOf(task int) (sp uint64, ok bool) {
	words := t.calls.of(t.View.Proc, task)
	if words == nil {
		return 0, false
	}
	sp, err := strconv.ParseUint(string(bytes.TrimPrefix(words[len(words)-2], []byte("0x"))), 16, 64)
	return sp, err == nil
}

// callWords is how many words the kernel has for a call: its number, six arguments, the stack pointer and the program counter.
const callWords = 9

// of is what the kernel says of the call that a thread stands in; nil where it says nothing. A thread that was just notified of may not
// have left its processor yet, and is "running" for a moment.
func (c callFiles) of(proc, task int) [][]byte {
	const tries = 1000
	for i := range tries {
		text := make([]byte, 256)
		k, err := c.read(proc, task, text)
		words := bytes.Fields(text[:max(k, 0)])
		switch {
		case err != nil || k <= 0:
			return nil
		case len(words) == callWords:
			return words
		case i > 10:
			time.Sleep(10 * time.Microsecond)
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// callFiles are the files that are kept open of threads, by their numbers.
type callFiles map[int]int

// maxCalls bounds them.
const maxCalls = 256

// read reads /proc/TASK/syscall, which stays open: most threads ask again. Of one that is gone it says nothing any more.
func (c callFiles) read(proc, task int, b []byte) (int, error) {
	if fd, ok := c[task]; ok {
		if n, err := unix.Pread(fd, b, 0); err == nil {
			return n, nil
		}
		unix.Close(fd)
		delete(c, task)
	}
	fd, err := unix.Openat(proc, strconv.Itoa(task)+"/syscall", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if len(c) >= maxCalls {
		c.close()
	}
	c[task] = fd
	n, err := unix.Pread(fd, b, 0)
	return max(n, 0), err
}

func (c callFiles) close() {
	for _, fd := range c {
		unix.Close(fd)
	}
	clear(c)
}
