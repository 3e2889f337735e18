package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// errNotNow says that nothing has come that could be read without waiting. It counts as temporary, so that TLS goes on after it.
var errNotNow net.Error = notNow{}

type notNow struct{}

func (notNow) Error() string   { return "nothing to read by now" }
func (notNow) Timeout() bool   { return true }
func (notNow) Temporary() bool { return true }

// An eager reads a connection through a buffer, so that many small records of TLS cost one system call; and where it is told to, only
// what is in that already. It is used by one goroutine at a time.
type eager struct {
	conn   net.Conn
	before *bufio.Reader          // read from while it holds anything; nil for none
	now    bool                   // nothing is waited for
	again  atomic.Pointer[func()] // called before the connection is read next, once; nil for nothing

	buf     []byte
	at, end int // what of it has been filled and not read
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
		if e.now {
			return 0, errNotNow
		}
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
	case e.end == len(e.buf) && len(e.buf) < wsBusy: // there may be more
		e.buf = make([]byte, wsBusy)
	}
	if tell := e.again.Swap(nil); tell != nil {
		(*tell)()
	}
	e.at = 0
	if e.end, err = e.conn.Read(e.buf); e.end > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// more reads from src, which reads from e, what has come behind what was read last; 0 where nothing has.
func (e *eager) more(src io.Reader, p []byte) (int, error) {
	if e == nil {
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
