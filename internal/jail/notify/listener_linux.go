package notify

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Listener is where the notified calls of a jail arrive.
type Listener struct {
	fd      int
	stop    int // an eventfd: written to, it ends receiving
	done    chan struct{}
	handle  func(*Call) (after func())
	threads threads
}

// Listen takes over fd and starts the thread that receives. handle answers each call, one at a time, or has it answered; what it returns, if
// anything, is run on the same thread while another one receives. Stop ends it. It also ends when no process with the filter is left.
func Listen(fd int, handle func(*Call) (after func())) (*Listener, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	// Caller and answerer take turns, so that one processor serves both best. Before Linux 6.6 they find out themselves.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	manyThreads()
	l := &Listener{fd: fd, stop: stop, done: make(chan struct{}), handle: handle}
	l.threads.waiting = make(chan struct{}, maxWaiting)
	l.next()
	return l, nil
}

// Stop returns once nothing is received any more. It is called once.
func (l *Listener) Stop() {
	one := [8]byte{1}
	unix.Write(l.stop, one[:])
	<-l.done
}

// Close fails the calls that still wait, once what runs after calls has ended. It is called once, after Stop.
func (l *Listener) Close() {
	unix.Close(l.stop)
	l.threads.running.Wait()
	unix.Close(l.fd)
}

// receive answers calls until there is one that leaves something to do, which it returns. nil means that all is over.
func (l *Listener) receive() (after func()) {
	fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(l.stop), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[1].Revents != 0:
			return nil
		case fds[0].Revents&unix.POLLIN != 0:
			if after := l.one(); after != nil {
				return after
			}
		case fds[0].Revents != 0: // POLLHUP: nobody is left
			return nil
		}
	}
}

// one takes one call, which does not block once the descriptor was ready. Errors mean that the caller is gone.
func (l *Listener) one() (after func()) {
	var n notification
	if l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != nil {
		return nil
	}
	return l.handle(&Call{ID: n.ID, Task: int(n.PID), Nr: n.Nr, IP: n.IP, Args: n.Args, from: l})
}

// notification is the struct seccomp_notif of linux/seccomp.h; its size is part of the number of the ioctl.
type notification struct {
	ID    uint64
	PID   uint32
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

func (l *Listener) ioctl(req uint, arg unsafe.Pointer) error {
	_, err := Ioctl(uintptr(l.fd), req, arg)
	return err
}

// threads take turns at a Listener: one receives, and sleeps in the kernel meanwhile, which wakes it without a scheduler. When it has
// something to wait for, another one receives.
type threads struct {
	running sync.WaitGroup
	waiting chan struct{} // a token for each that waits

	mu   sync.Mutex
	idle []*os.File // eventfds: a thread waits for each, and receives when it is written to
	over bool
}

const (
	maxWaiting = 64 // threads at once; beyond that all calls wait until one is done
	maxIdle    = 4
)

// manyThreads lets Go's scheduler think that there are more processors: threads that sleep in the kernel keep one each until it
// takes that away from them, for which it wakes up every 20 µs.
func manyThreads() {
	const few = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < few {
		runtime.GOMAXPROCS(few)
	}
}

// next has another thread receive.
func (l *Listener) next() {
	rs := &l.threads
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if last := len(rs.idle) - 1; last >= 0 {
		wake(rs.idle[last])
		rs.idle = rs.idle[:last]
		return
	}
	rs.running.Go(func() {
		runtime.LockOSThread() // the kernel knows a tracer by its thread
		defer runtime.UnlockOSThread()
		l.takeTurns()
	})
}

// takeTurns receives, and then as often as it is this thread's turn again.
func (l *Listener) takeTurns() {
	rs := &l.threads
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	turn := os.NewFile(uintptr(fd), "turn") // nil for none
	defer turn.Close()
	for {
		after := l.receive()
		if after == nil {
			rs.end()
			close(l.done)
			return
		}
		rs.waiting <- struct{}{}
		l.next()
		after()
		<-rs.waiting
		if err != nil || !rs.rest(turn) {
			return
		}
	}
}

// rest waits for the next turn; false means that there is none.
func (rs *threads) rest(turn *os.File) bool {
	rs.mu.Lock()
	if rs.over || len(rs.idle) >= maxIdle {
		rs.mu.Unlock()
		return false
	}
	rs.idle = append(rs.idle, turn)
	rs.mu.Unlock()
	var b [8]byte
	_, err := turn.Read(b[:])
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return err == nil && !rs.over
}

// end wakes all that wait.
func (rs *threads) end() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.over = true
	for _, turn := range rs.idle {
		wake(turn)
	}
	rs.idle = nil
}

func wake(turn *os.File) {
	one := [8]byte{1}
	_, _ = turn.Write(one[:])
}
