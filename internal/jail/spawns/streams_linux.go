package spawns

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

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
