package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lend"
	"golang.org/x/sys/unix"
)

// copy passes on what the server writes to its stderr. Who reads its stdout may write to the same file as it does, and is to do so
// behind it: what stands in its stderr goes before each piece of its stdout and before its end.
func (e *errs) copy(t *relay) {
	defer t.clientErr.closeWrite()
	defer t.serverErr.closeRead()
	if !t.serverErr.file.watching || !t.clientErr.file.watching {
		t.copy(t.serverErr, t.clientErr, stderrSide, t.fromStderr, nil)
		return
	}
	for (e.holds() || t.serverErr.awaitRead()) && t.clientErr.awaitWrite() && e.move(t) {
	}
}

// holds reports whether something was taken from the server's stderr that the client's did not take yet.
func (e *errs) holds() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.rest) > 0
}

// move passes on what stands in the server's stderr, as far as that goes without waiting: a client may read its stdout first. It
// reports whether there may be more.
func (e *errs) move(t *relay) bool {
	if t.serverErr == nil || !t.serverErr.file.watching || !t.clientErr.file.watching {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var buf [surelyFits]byte
	for moved := 0; moved < relayBuffer && t.clientErr.ready(unix.POLLOUT); {
		if len(e.rest) == 0 {
			if !t.serverErr.ready(unix.POLLIN) {
				break
			}
			n, err := t.serverErr.Read(buf[:])
			if err != nil {
				t.reachedEnd(t.serverErr, stderrSide, err)
				return false
			}
			b, err := t.fromStderr(buf[:n])
			if err != nil {
				t.fail(err)
				return false
			}
			e.rest = append(e.rest, b...)
		}
		n, err := t.clientErr.writeNow(e.rest)
		switch e.rest = e.rest[n:]; {
		case errors.Is(err, unix.EAGAIN): // another that has the same stderr has filled it meanwhile
			return true
		case err != nil:
			return false
		}
		moved += n
	}
	return true
}

// writeNow writes what of b can be written without waiting.
func (e *end) writeNow(b []byte) (n int, err error) {
	conn, err := e.file.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	errControl := conn.Control(func(fd uintptr) { // conn.Write would wait for errs.copy, which may wait there
		for n, err = unix.Write(int(fd), b); errors.Is(err, unix.EINTR); n, err = unix.Write(int(fd), b) {
		}
	})
	return max(n, 0), cmp.Or(errControl, err)
}

// awaitRead waits until something can be read, be it the end. False says that e is closed.
func (e *end) awaitRead() bool {
	conn, err := e.file.f.SyscallConn()
	return err == nil && conn.Read(func(fd uintptr) bool { return lend.Ready(int(fd), unix.POLLIN) }) == nil
}

// awaitWrite waits until surelyFits bytes can be written, or never any more. False says that e is closed.
func (e *end) awaitWrite() bool {
	conn, err := e.file.f.SyscallConn()
	return err == nil && conn.Write(func(fd uintptr) bool { return lend.Ready(int(fd), unix.POLLOUT) }) == nil
}

// ready reports whether one of events, or an error or the end, is there now.
func (e *end) ready(events int16) (yes bool) {
	if conn, err := e.file.f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { yes = lend.Ready(int(fd), events) })
	}
	return yes
}

// gone waits until nobody reads what is written to e any more, and reports true, or until e is closed. Only pipes, and sockets of one
// direction, can be waited for: of a socket that is read too the reader sees the end.
func (e *end) gone() (gone bool) {
	if !e.file.watching || e.file.both { // to wait keeps others from reading
		return false
	}
	conn, err := e.file.f.SyscallConn()
	if err != nil {
		return false
	}
	// Of the end of a pipe that is written to nothing but an error makes the poller say that it can be read.
	_ = conn.Read(func(fd uintptr) bool {
		gone = lend.Ready(int(fd), 0)
		return gone
	})
	return gone
}

// hungUp reports whether the far end is gone. That of a nil end is not.
func (e *end) hungUp() bool { return e != nil && e.ready(0) }

// forking is how long a child that is being forked has our files at most, until its exec.
const forking = 250 * time.Millisecond

// leave is what Leave does: it calls closing, which closes f.
func leave(f *os.File, closing func()) {
	defer closing()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	other := -1 // the pipe's other end
	_ = conn.Control(func(fd uintptr) {
		other, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil || other < 0 {
		return // a socket, or closed
	}
	writer := &end{file: &endFile{f: os.NewFile(uintptr(other), f.Name()), watching: true}}
	defer writer.close()
	syscall.ForkLock.RLock() // what is being forked now has it, and what will be has not
	closing()
	syscall.ForkLock.RUnlock()
	_ = writer.file.f.SetReadDeadline(time.Now().Add(forking))
	writer.gone()
}

// unread returns how many bytes that were written to f, a pipe or a Unix socket, nobody has read yet; 0 where that is not known. A
// socket counts what it needs to hold them too.
func unread(f *os.File) int {
	n := 0
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ); err != nil { // a pipe has one queue, and either end tells of it
			n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		}
	})
	return n
}
