package jail

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

// A spawnProcess is a process that somebody talks with.
type spawnProcess struct {
	pid   int
	key   uint64
	pidfd *os.File // readable once the process is gone
	task  *os.File // of the thread that executes, whose descriptors are taken; pidfd where that is the same
	links []string // what was put at 0 and 1; the spawns' mutex guards it

	inputOnly bool    // see Spawn.InputOnly
	stub      bool    // it was to become one: whatever it executes is
	seen      bool    // nonblock is known
	nonblock  [3]bool // how what stood there blocked
	altered   [3]bool // and whether it does so no more

	waiting sync.Once
	waited  atomic.Bool
	ended   atomic.Bool
	end     chan Ended
}

// newProcess opens what outlives a PID.
func (s *spawns) newProcess(pid, thread int) (*spawnProcess, error) {
	p := &spawnProcess{pid: pid, end: make(chan Ended, 1)}
	fd, err := unix.PidfdOpen(pid, inspect.PidfdNonblock)
	if err != nil {
		return nil, err
	}
	p.pidfd = os.NewFile(uintptr(fd), "pidfd")
	p.task = p.pidfd
	if thread != pid {
		if fd, err := unix.PidfdOpen(thread, inspect.PidfdThread); err == nil { // before Linux 6.9 its process must do: the table is mostly one
			p.task = os.NewFile(uintptr(fd), "pidfd")
		}
	}
	return p, nil
}

func (p *spawnProcess) close() {
	p.pidfd.Close()
	p.task.Close() // it may be pidfd, which os.File tells apart
}

// drop closes p unless somebody waits for its end.
func (p *spawnProcess) drop() {
	if !p.waited.Load() {
		p.close()
	}
}

// take duplicates descriptor i of the process.
func (p *spawnProcess) take(i int) (fd int, err error) {
	err = withFD(p.task, func(task int) error {
		fd, err = unix.PidfdGetfd(task, i, 0)
		return err
	})
	return fd, err
}

// isStreamAt reports whether descriptor i, which link is of, is a pipe or a Unix stream socket.
func (p *spawnProcess) isStreamAt(i int, link string) bool { return isPipe(link) || p.isStream(i) }

// inputEnded reports whether nobody writes any more to the pipe at descriptor 0.
func (p *spawnProcess) inputEnded() bool {
	fd, err := p.take(0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	set := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(set, 0)
	return err == nil && n > 0 && set[0].Revents&unix.POLLHUP != 0
}

func (p *spawnProcess) isStream(i int) bool {
	fd, err := p.take(i)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	domain, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err1 == nil && err2 == nil && domain == unix.AF_UNIX && kind == unix.SOCK_STREAM
}

// restore makes what was taken and not replaced block as it did.
func (p *spawnProcess) restore(a *SpawnAnswer) {
	for i, altered := range p.altered {
		if !altered || a != nil && a.Stdio[i] != nil {
			continue
		}
		if fd, err := p.take(i); err == nil {
			unix.SetNonblock(fd, false)
			unix.Close(fd)
		}
		p.altered[i] = false
	}
}

// SpawnsLost returns how many execves went on although they may have been spawns that the SpawnWatcher is told of: their processes
// could not be looked at, or were too many.
func (j *Jail) SpawnsLost() int64 {
	if j.spawns == nil {
		return 0
	}
	return j.spawns.lost.Load()
}

// Ended tells how the process ended, once. The channel is never closed. Where the answer to a spawn is nil nothing comes.
func (s *Spawn) Ended() <-chan Ended { return s.process.end }

// Environ returns the variables of the process, as NAME=VALUE: those of the program that it runs by now. There are none when it is
// gone.
func (s *Spawn) Environ() ([]string, error) {
	b, err := s.process.environ()
	if err != nil {
		return nil, fmt.Errorf("environment of process %d: %w", s.process.pid, err)
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 }), nil
}

// maxEnviron bounds the environment of one process that is read, in bytes: more than the kernel passes to a program by default.
const maxEnviron = 8 << 20

// environ reads the process's file in /proc, and nothing when that may have been another's with the same number.
func (p *spawnProcess) environ() ([]byte, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return nil, p.unlessGone(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if p.signal(0) != nil {
		return nil, nil
	}
	return b, p.unlessGone(err)
}

func (p *spawnProcess) unlessGone(err error) error {
	if p.signal(0) != nil {
		return nil
	}
	return err
}

// Signal sends sig to the process: a stub that stands for a program that died of it does so too. The error is
// os.ErrProcessDone when it is gone.
func (s *Spawn) Signal(sig syscall.Signal) error {
	return s.process.signal(sig)
}

func (p *spawnProcess) signal(sig syscall.Signal) error {
	err := withFD(p.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
	if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrClosed) {
		return os.ErrProcessDone
	}
	return err
}

// wait has, once, somebody wait for the end of the process.
func (p *spawnProcess) wait(s *spawns) {
	p.waiting.Do(func() {
		p.waited.Store(true)
		told := func(e Ended) {
			s.forget(p)
			p.end <- e
			p.ended.Store(true)
			p.close()
		}
		err := withFD(p.pidfd, func(fd int) error {
			own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return s.ends.add(p.pid, own, told)
		})
		if err != nil {
			told(Ended{})
		}
	})
}
