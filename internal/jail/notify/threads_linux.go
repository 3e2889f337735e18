package notify

import (
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

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
