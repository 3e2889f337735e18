package spawns

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
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// A talk is a process that somebody talks with.
type talk struct {
	*process.Process
	key   uint64
	task  *os.File // a pidfd of the thread that executes, whose descriptors are taken
	links []string // what was put at 0 and 1; the Finder's mutex guards it

	inputOnly bool    // see Spawn.InputOnly
	stub      bool    // it was to become one: whatever it executes is
	seen      bool    // nonblock is known
	nonblock  [3]bool // how what stood there blocked
	altered   [3]bool // and whether it does so no more

	waiting sync.Once
	ended   atomic.Bool
	end     chan process.Ended
}

// openTask opens a thread that is about to execute, whose descriptors are to be looked at. Before Linux 6.9 its process must do: the table
// is mostly one.
func openTask(pid, thread int) (*os.File, error) {
	fd, err := unix.PidfdOpen(thread, inspect.PidfdThread)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "task"), nil
}

// take duplicates descriptor i of the process.
func (p *talk) take(i int) (fd int, err error) {
	err = process.WithFD(p.task, func(task int) error {
		fd, err = unix.PidfdGetfd(task, i, 0)
		return err
	})
	return fd, err
}

// isStreamAt reports whether descriptor i, which link is of, is a pipe or a Unix stream socket.
func (p *talk) isStreamAt(i int, link string) bool { return isPipe(link) || p.isStream(i) }

// inputEnded reports whether nobody writes any more to the pipe at descriptor 0.
func (p *talk) inputEnded() bool {
	fd, err := p.take(0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	set := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(set, 0)
	return err == nil && n > 0 && set[0].Revents&unix.POLLHUP != 0
}

func (p *talk) isStream(i int) bool {
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
func (p *talk) restore(a *Answer) {
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

// Ended tells how the process ended, once. The channel is never closed. Where the answer to a spawn is nil nothing comes.
func (s *Spawn) Ended() <-chan process.Ended { return s.talk.end }

// Environ returns the variables of the process, as NAME=VALUE: those of the program that it runs by now. There are none when it is
// gone.
func (s *Spawn) Environ() ([]string, error) {
	b, err := s.talk.environ()
	if err != nil {
		return nil, fmt.Errorf("environment of process %d: %w", s.talk.PID, err)
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 }), nil
}

// maxEnviron bounds the environment of one process that is read, in bytes: more than the kernel passes to a program by default.
const maxEnviron = 8 << 20

// environ reads the process's file in /proc, and nothing when that may have been another's with the same number.
func (p *talk) environ() ([]byte, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(p.PID) + "/environ")
	if err != nil {
		return nil, p.unlessGone(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if p.Signal(0) != nil {
		return nil, nil
	}
	return b, p.unlessGone(err)
}

func (p *talk) unlessGone(err error) error {
	if p.Signal(0) != nil {
		return nil
	}
	return err
}

// Signal sends sig to the process: a stub that stands for a program that died of it does so too. The error is
// os.ErrProcessDone when it is gone.
func (s *Spawn) Signal(sig syscall.Signal) error { return s.talk.Signal(sig) }

// await has, once, somebody wait for the end of the process.
func (p *talk) await(s *Finder) {
	p.waiting.Do(func() {
		s.table.Lock()
		defer s.table.Unlock()
		s.table.OnEnd(p.Process, func(e process.Ended) {
			s.forget(p)
			p.end <- e
			p.ended.Store(true)
		})
	})
}
