package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// errNotNow says that nothing has come that could be read without waiting. It counts as temporary, so that TLS goes on after it.
var errNotNow net.Error = notNow{}

type notNow struct{}

func (notNow) Error() string   { return "nothing to read by now" }
func (notNow) Timeout() bool   { return true }
func (notNow) Temporary() bool { return true }

// An eager reads a connection through a buffer, so that many small records of TLS cost one system call; and where it is told to, only
// what has come already. It is used by one goroutine at a time.
type eager struct {
	conn   net.Conn
	before *bufio.Reader // read from while it holds anything; nil for none
	raw    syscall.RawConn
	now    bool                   // nothing is waited for
	again  atomic.Pointer[func()] // called before the connection is read next, once; nil for nothing

	buf     []byte
	at, end int  // what of it has been filled and not read
	full    bool // the last read of the connection filled it: there may be more
	got     int
	err     error // of the last system call
}

// newEager returns a reader of c, of which before may have read something already. On a system that cannot be asked what has come it
// only buffers.
func newEager(c net.Conn, before *bufio.Reader) *eager {
	e := &eager{conn: c, before: before}
	for in := c; in != nil && e.raw == nil; in = beneath(in) {
		if sc, ok := in.(syscall.Conn); ok && canReadNow {
			e.raw, _ = sc.SyscallConn() // nil where there is none
		}
	}
	return e
}

// Read implements io.Reader. With now set its error is errNotNow where nothing has come.
func (e *eager) Read(p []byte) (int, error) {
	if e.before != nil {
		if n := e.before.Buffered(); n > 0 {
			return e.before.Read(p[:min(n, len(p))])
		}
		e.before = nil
	}
	if e.at == e.end {
		if err := e.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.buf[e.at:e.end])
	e.at += n
	return n, nil
}

// fill reads once.
func (e *eager) fill() (err error) {
	switch {
	case e.buf == nil:
		e.buf = make([]byte, wsIdle)
	case e.full && len(e.buf) < wsBusy:
		e.buf = make([]byte, wsBusy)
	}
	if tell := e.again.Swap(nil); tell != nil {
		(*tell)()
	}
	e.at, e.end = 0, 0
	if !e.now {
		e.end, err = e.conn.Read(e.buf)
	} else {
		e.end, err = e.readNow()
	}
	e.full = e.end == len(e.buf)
	if e.end > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// readNow reads what has come.
func (e *eager) readNow() (int, error) {
	if e.raw == nil || !e.full { // what was there has been read
		return 0, errNotNow
	}
	if err := e.raw.Read(e.readFD); err != nil {
		return 0, err
	}
	switch {
	case e.err == nil && e.got == 0:
		return 0, io.EOF
	case errors.Is(e.err, syscall.EAGAIN), errors.Is(e.err, syscall.EINTR):
		return 0, errNotNow
	}
	return max(e.got, 0), e.err
}

// more reads from src, which reads from e, what has come behind what was read last; 0 where nothing has.
func (e *eager) more(src io.Reader, p []byte) (int, error) {
	if e == nil || e.raw == nil {
		return 0, nil
	}
	e.now = true
	n, err := src.Read(p)
	e.now = false
	if errors.Is(err, errNotNow) {
		err = nil
	}
	return n, err
}
