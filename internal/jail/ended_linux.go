package jail

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ends tells how processes end. One goroutine waits for all of them, which stop ends; it tells, and calls nothing that blocks.
type ends struct {
	proc  int      // the recorder's /proc
	epoll *os.File // of the pidfds, which are readable once their processes are gone
	most  int      // processes at once

	left sync.WaitGroup // processes whose end is waited for
	done chan struct{}

	mu    sync.Mutex
	alive map[int]*awaited // by pidfd
	over  bool             // what lives is killed
}

// An awaited is a process whose end somebody waits for.
type awaited struct {
	pid, pidfd int
	left       bool        // it lived when all was killed; the mutex of ends guards it
	told       func(Ended) // called once
}

func newEnds(proc, most int) (*ends, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that os.File waits for it
		unix.Close(fd)
		return nil, err
	}
	e := &ends{proc: proc, most: most, epoll: os.NewFile(uintptr(fd), "ends"), done: make(chan struct{}), alive: make(map[int]*awaited)}
	go e.serve()
	return e, nil
}

// stop waits until all that is waited for has ended, at the latest with the jail.
func (e *ends) stop() {
	e.left.Wait()
	e.epoll.Close()
	<-e.done
}

func (e *ends) serve() {
	defer close(e.done)
	c, err := e.epoll.SyscallConn()
	if err != nil {
		return
	}
	var events [64]unix.EpollEvent
	for {
		n := 0
		err := c.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events[:], 0)
			return n > 0
		})
		if err != nil {
			return
		}
		for _, ev := range events[:n] {
			e.tell(int(ev.Fd))
		}
	}
}

// add has told called when the process of pidfd, which it takes over, is gone. The error says that it is not.
func (e *ends) add(pid, pidfd int, told func(Ended)) error {
	if err := e.begin(&awaited{pid: pid, pidfd: pidfd, told: told}); err != nil {
		unix.Close(pidfd)
		return err
	}
	err := e.watch(unix.EPOLL_CTL_ADD, pidfd)
	if err != nil {
		e.take(pidfd)
		e.drop(pidfd)
	}
	return err
}

func (e *ends) watch(op, pidfd int) error {
	return withFD(e.epoll, func(fd int) error {
		return unix.EpollCtl(fd, op, pidfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pidfd)})
	})
}

func (e *ends) begin(g *awaited) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.alive) >= e.most {
		return errTooMany
	}
	g.left = e.over
	e.alive[g.pidfd] = g
	e.left.Add(1)
	return nil
}

func (e *ends) take(pidfd int) (g *awaited, left bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g = e.alive[pidfd]
	delete(e.alive, pidfd)
	return g, g.left
}

func (e *ends) drop(pidfd int) {
	unix.Close(pidfd)
	e.left.Done()
}

func (e *ends) tell(pidfd int) {
	defer e.drop(pidfd)
	g, left := e.take(pidfd)
	_ = e.watch(unix.EPOLL_CTL_DEL, pidfd) // there may be another descriptor of it
	how := e.how(g)
	how.Left = left
	g.told(how)
}

// full reports whether no more processes can be waited for.
func (e *ends) full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.alive) >= e.most
}

// killing is told that all that lives now is about to be killed, and whether it was stopped before.
func (e *ends) killing(stopped bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	var until time.Time
	if stopped {
		until = time.Now().Add(untilDead)
	}
	for _, g := range e.alive {
		g.left = g.left || e.lives(g, until)
	}
}

// untilDead is how long what was killed takes at most to end, or to stop.
const untilDead = 100 * time.Millisecond

// lives reports whether the process has not ended. One that was killed may take a moment for that, in which it does not stop: it is
// asked again until it has done either, or until then.
func (e *ends) lives(g *awaited, until time.Time) bool {
	over := isOver(g.pidfd, 0)
	for !over && time.Now().Before(until) && !e.stopped(g) {
		over = isOver(g.pidfd, 1)
	}
	return !over
}

// stopped reports whether the process, which is not over, stands still.
func (e *ends) stopped(g *awaited) bool {
	var buf [1024]byte
	f := statFields(e.stat(g.pid, buf[:]))
	return len(f) > 0 && (f[0][0] == 'T' || f[0][0] == 't')
}

// isOver reports whether the process of a pidfd is gone, and waits for it so many milliseconds.
func isOver(pidfd, timeout int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, timeout)
		if !errors.Is(err, unix.EINTR) {
			return fds[0].Revents != 0
		}
	}
}

// how asks the kernel how a process ended that was waited for, and /proc while nobody has. Between the two it is looked at again.
func (e *ends) how(g *awaited) Ended {
	var buf [1024]byte
	for range 1000 {
		if status, ok := reapedStatus(g.pidfd); ok {
			return Ended{Exit: exitOf(status), Known: true}
		}
		status, ok := statusIn(e.stat(g.pid, buf[:]))
		gone := errors.Is(unix.PidfdSendSignal(g.pidfd, 0, nil, 0), unix.ESRCH) // then its number may have been another's
		switch {
		case ok && !gone:
			return Ended{Exit: exitOf(status), Known: true}
		case gone:
			status, ok := reapedStatus(g.pidfd)
			return Ended{Exit: exitOf(status), Known: ok}
		}
		runtime.Gosched()
	}
	return Ended{}
}

// stat reads /proc/PID/stat; nothing where there is none.
func (e *ends) stat(pid int, buf []byte) []byte {
	fd, err := unix.Openat(e.proc, strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf)
	return buf[:max(n, 0)]
}

// statFields are what follows the name in a /proc/PID/stat. The name may hold anything, what follows no parenthesis.
func statFields(stat []byte) [][]byte {
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}

// statusIn finds the status of a dead process in its /proc/PID/stat.
func statusIn(stat []byte) (unix.WaitStatus, bool) {
	const state, code = 0, 49 // the 3rd and 52nd of proc_pid_stat(5)
	fields := statFields(stat)
	if len(fields) <= code || string(fields[state]) != "Z" && string(fields[state]) != "X" { // X: somebody is taking it
		return 0, false
	}
	v, err := strconv.ParseUint(string(fields[code]), 10, 32)
	return unix.WaitStatus(v), err == nil
}

// reapedStatus asks for the status of a process that was waited for; Linux 6.15 and newer know it.
func reapedStatus(pidfd int) (unix.WaitStatus, bool) {
	// The first version's size; newer kernels take it too.
	const getInfo = unix.PIDFD_GET_INFO&^(0x3fff<<16) | unix.PIDFD_INFO_SIZE_VER0<<16
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if ioctl(uintptr(pidfd), getInfo, unsafe.Pointer(&info)) != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return 0, false
	}
	return unix.WaitStatus(info.Exit_code), true
}
