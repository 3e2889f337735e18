package lend

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peek waits for what can be read from a pipe, and returns its beginning, which stays there. The error is io.EOF where nobody writes any more.
func Peek(f *os.File) ([]byte, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	b, n := make([]byte, os.Getpagesize()), 0
	errRead := c.Read(func(fd uintptr) bool {
		if n, err = tee(int(fd), fds[1], len(b)); n > 0 {
			n, err = unix.Read(fds[0], b)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	return b[:max(n, 0)], errors.Join(err, errRead)
}

// tee copies a piece from one pipe to another. The error is EAGAIN where there is none.
func tee(from, to, most int) (int, error) {
	for {
		n, err := unix.Tee(from, to, most, unix.SPLICE_F_NONBLOCK)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && n == 0:
			return 0, io.EOF
		default:
			return int(max(n, 0)), err
		}
	}
}

// A Loan lends what stands in one pipe to who reads another. One goroutine uses it, which closes it.
type Loan struct {
	from, to   syscall.RawConn // to wait with: whoever closes the files ends that
	take, give int             // the same, as descriptors of our own
	turn       *turn           // of the pipe that is read
	buf        []byte
}

// New returns a Loan from the reading end of a pipe to the writing end of an empty one, both of which Go can wait for.
func New(from, to *os.File) (*Loan, error) {
	l := &Loan{take: -1, give: -1, buf: make([]byte, os.Getpagesize())}
	if err := l.open(from, to); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Loan) open(from, to *os.File) (err error) {
	if l.from, l.take, err = own(from); err != nil {
		return err
	}
	if l.to, l.give, err = own(to); err != nil {
		return err
	}
	// Of one page: its writer is woken when all of that was read, and not before.
	if _, err = unix.FcntlInt(uintptr(l.give), unix.F_SETPIPE_SZ, len(l.buf)); err != nil {
		return os.NewSyscallError("F_SETPIPE_SZ", err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(l.take, &st); err != nil {
		return err
	}
	l.turn = turnOf(pipeID{uint64(st.Dev), st.Ino}) //nolint:unconvert // elsewhere it is a smaller one
	return nil
}

// own duplicates the descriptor of f.
func own(f *os.File) (c syscall.RawConn, fd int, err error) {
	if c, err = f.SyscallConn(); err != nil {
		return nil, -1, err
	}
	errControl := c.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3) })
	if err = errors.Join(errControl, err); err != nil {
		return nil, -1, err
	}
	return c, fd, nil
}

// Close lets go of both pipes, whose files stay open.
func (l *Loan) Close() {
	for _, fd := range []int{l.take, l.give} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if l.turn != nil {
		l.turn.leave()
	}
}

// Pass lends a piece, waits until it was read, and returns what of it was, which is valid until the next call. The error is io.EOF where
// nobody writes any more, and EPIPE where nobody reads any more. A Loan that waits for its turn ends with left.
func (l *Loan) Pass(left <-chan struct{}) ([]byte, error) {
	for {
		if err := l.await(); err != nil {
			return nil, err
		}
		b, err := l.passInTurn(left)
		if !errors.Is(err, unix.EAGAIN) { // somebody else has read it
			return b, err
		}
	}
}

func (l *Loan) passInTurn(left <-chan struct{}) ([]byte, error) {
	if !l.turn.take(left) {
		return nil, unix.EPIPE
	}
	defer l.turn.give()
	n, err := tee(l.take, l.give, len(l.buf))
	if err != nil {
		return nil, err
	}
	var unread int
	errWait := l.to.Write(func(uintptr) bool {
		gone := Ready(l.give, 0) // first: who is gone reads no more
		unread, err = unix.IoctlGetInt(l.give, unix.TIOCINQ)
		return err != nil || unread == 0 || gone
	})
	read := l.buf[:max(n-unread, 0)]
	err = errors.Join(errWait, err, readFull(l.take, read))
	if err == nil && unread > 0 {
		err = unix.EPIPE
	}
	return read, err
}

// await waits until something can be lent, be it the end.
func (l *Loan) await() error {
	return l.from.Read(func(uintptr) bool { return Ready(l.take, unix.POLLIN) })
}

// readFull reads all of b, which stands in the pipe unless somebody else has read it.
func readFull(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("read", err)
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			b = b[n:]
		}
	}
	return nil
}

// Ready reports whether one of events, or an error or the far end's end, is there.
func Ready(fd int, events int16) bool {
	set := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		if _, err := unix.Poll(set, 0); !errors.Is(err, unix.EINTR) {
			return err == nil && set[0].Revents != 0
		}
	}
}
