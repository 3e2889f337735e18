package network

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A target is what the program dialled.
type target struct {
	addr netip.AddrPort
	name string // that addr was given out for; "" for a literal address
}

// host is the name, else the literal address.
func (t target) host() string {
	if t.name != "" {
		return t.name
	}
	return t.addr.Addr().String()
}

func (t target) port() int { return int(t.addr.Port()) }

// A conn is one connection of the program. Its first bytes may have been looked at: in is where Read goes on.
type conn struct {
	net.Conn
	in     io.Reader
	ahead  *bufio.Reader // part of in: what of it has been read from Conn; nil before sniff
	target target

	secured time.Time   // when the TLS handshake was done
	active  atomic.Bool // a request has begun

	asker, opener peer // see Config.Asker and Config.Opener

	came atomic.Uint64 // Tap.Ordinal when the program connected, until its first request, which it meant then, takes it
}

func newConn(c net.Conn, names *Names) *conn {
	var t target
	if a, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
		t.addr = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		t.name, _ = names.Name(t.addr.Addr())
	}
	return &conn{Conn: c, in: c, target: t}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) { return c.in.Read(b) }

// A peer is the number of who is on the other side of a connection, which is asked for once: when its first request has come.
type peer struct {
	once   sync.Once
	number uint64
}

func (p *peer) of(c *conn, ask func(net.Addr) uint64) uint64 {
	if ask != nil {
		p.once.Do(func() { p.number = ask(c.RemoteAddr()) })
	}
	return p.number
}

// eager makes Read one that can be told not to wait. What was unread has to have been read.
func (c *conn) eager() *eager {
	e := &eager{conn: c.Conn, before: c.ahead}
	c.in = e
	return e
}

// unread makes Read give b again before anything else.
func (c *conn) unread(b []byte) {
	if len(b) > 0 {
		c.in = io.MultiReader(bytes.NewReader(b), c.in)
	}
}

// A handoff is the listener through which connections that were looked at reach the HTTP server.
type handoff struct {
	conns  chan net.Conn
	closed chan struct{} // closed by Server.Close
}

func newHandoff() *handoff {
	return &handoff{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// put hands c over, or closes it where the server has ended.
func (h *handoff) put(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		c.Close()
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// end makes Accept fail, and put close what it gets.
func (h *handoff) end() { close(h.closed) }

// Close implements net.Listener. The listener ends with its Server, not with the HTTP server that reads it.
func (h *handoff) Close() error { return nil }

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }

// acceptPause is how long an accept loop waits when the process has no descriptor left.
const acceptPause = 5 * time.Millisecond

// isTemporary reports whether accepting may go on after err, and waits a moment where descriptors have run out.
func isTemporary(err error) bool {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		time.Sleep(acceptPause)
		return true
	}
	return errors.Is(err, syscall.ECONNABORTED)
}

// connKey is the context key of a request's *conn.
type connKey struct{}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
