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

// ErrNoStream is what Spawn.Stdio returns for a descriptor that is closed, or a terminal.
var ErrNoStream = errors.New("no stream stands there that could be taken")

// Stdio returns what stands at descriptor i (0, 1 or 2) of the process, for the caller to close. Call it within Spawning. The
// error is ErrNoStream where nothing stands there, or a terminal. Reads and writes of a pipe end when it is closed; so
// do those of a socket, but for a standard error that the parent has too.
func (s *Spawn) Stdio(i int) (*os.File, error) {
	p := s.talk
	p.seeFlags()
	fd, err := p.take(i)
	if errors.Is(err, unix.EBADF) {
		return nil, ErrNoStream
	}
	if err != nil {
		return nil, fmt.Errorf("take descriptor %d of process %d: %w", i, p.PID, err)
	}
	if inspect.IsTerminal(fd) {
		unix.Close(fd)
		return nil, ErrNoStream
	}
	if !p.nonblock[i] {
		fd = p.unblock(fd, i)
	}
	return os.NewFile(uintptr(fd), "descriptor "+strconv.Itoa(i)+" of process "+strconv.Itoa(p.PID)), nil
}

// seeFlags finds out how the streams block before any of them is changed: two may be one.
func (p *talk) seeFlags() {
	if p.seen {
		return
	}
	p.seen = true
	for i := range p.nonblock {
		fd, err := p.take(i)
		if err != nil {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		p.nonblock[i] = err == nil && flags&unix.O_NONBLOCK != 0
		unix.Close(fd)
	}
}

// unblock makes a descriptor one that Go can wait for. How a stream blocks is common to all who have it by the same open: a
// pipe is opened once more, and what else may be others' stays as it is.
func (p *talk) unblock(fd, i int) int {
	var st unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || unix.Fstat(fd, &st) != nil {
		return fd
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags&unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
			return again
		}
	case unix.S_IFSOCK:
		if i < 2 && unix.SetNonblock(fd, true) == nil {
			p.altered[i] = true
		}
	}
	return fd
}

// Streams takes what stands at 0, 1 and 2, and makes what can be put there instead. Call it within Spawning.
func (s *Spawn) Streams() (*Streams, error) {
	var out Streams
	n := 3
	if s.InputOnly {
		n = 1
	}
	for i := range n {
		if err := s.stream(&out, i); err != nil && (i < 2 || !errors.Is(err, ErrNoStream)) {
			out.Close()
			return nil, err
		}
	}
	return &out, nil
}

func (s *Spawn) stream(out *Streams, i int) error {
	far, err := s.Stdio(i)
	if err != nil {
		return err
	}
	for k := range i {
		if sameFile(far, out.Far[k]) {
			far.Close()
			out.Far[i], out.Near[i], out.Put[i] = out.Far[k], out.Near[k], out.Put[k]
			return nil
		}
	}
	out.Far[i] = far
	out.Near[i], out.Put[i], err = pairLike(far, i)
	return err
}

// Close closes all of them.
func (st *Streams) Close() {
	for _, list := range [][3]*os.File{st.Far, st.Near, st.Put} {
		for _, f := range list {
			if f != nil {
				f.Close()
			}
		}
	}
}

func sameFile(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y) && x.Mode().Type()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// pairLike makes a pair of connected ends, sockets for a socket and else a pipe: one for the recorder, one to put at descriptor
// i.
func pairLike(f *os.File, i int) (near, put *os.File, err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	var fds [2]int
	if st.Mode()&os.ModeSocket != 0 {
		fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	} else {
		err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
		if i == 0 {
			fds[0], fds[1] = fds[1], fds[0]
		}
	}
	if err != nil {
		return nil, nil, os.NewSyscallError("pipe", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		inspect.CloseAll(fds[:])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "near end of descriptor "+strconv.Itoa(i)), os.NewFile(uintptr(fds[1]), "descriptor "+strconv.Itoa(i)), nil
}
