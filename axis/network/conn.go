package network

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
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

	turn   turn                 // of all that is written, but in HTTP/2
	tls    *tls.ConnectionState // of HTTP/2 in TLS, of which net/http does not know
	frames *frames              // of HTTP/2, set before anything of it is written; nil for HTTP/1

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

// Write implements net.Conn. What the program gets comes one after another (Config.Giving); the end of a connection comes with what was
// given last on it. Answers of HTTP/2 have turns of their own.
func (c *conn) Write(b []byte) (int, error) {
	if c.frames != nil {
		return c.Conn.Write(b)
	}
	c.turn.take()
	defer c.turn.given()
	defer time.AfterFunc(WriteMost, c.turn.over).Stop()
	c.turn.begin()
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.turn.over()
	return c.Conn.Close()
}

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
	closed chan struct{} // closed by Server.Close: then Accept fails, and put closes what it gets
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

// A protocol is what the first bytes of a connection say.
type protocol uint8

const (
	protoNone  protocol = iota // closed before a byte came
	protoTLS                   // a TLS handshake record
	protoHTTP                  // a method and a space, or HTTP/2's preface, which begins like one
	protoOther                 // anything else
)

const (
	recordHandshake = 0x16 // first byte of a TLS handshake record (RFC 8446, 5.1)
	maxMethod       = 24   // bytes: the longest registered HTTP method has 17
	sniffTimeout    = time.Minute
)

// sniff looks at the first bytes of c without taking them. A connection that stays silent for sniffTimeout is
// protoOther: the program waits for the server to speak first, which neither HTTP nor TLS does.
func sniff(c *conn) protocol {
	c.SetReadDeadline(time.Now().Add(sniffTimeout))
	defer c.SetReadDeadline(time.Time{})
	br := bufio.NewReaderSize(c.in, 4096)
	c.in, c.ahead = br, br
	for i := range maxMethod {
		b, err := br.Peek(i + 1)
		switch {
		case err != nil && i == 0 && !isTimeout(err):
			return protoNone
		case err != nil:
			return protoOther
		case i == 0 && b[0] == recordHandshake:
			return protoTLS
		case i > 0 && b[i] == ' ':
			return protoHTTP
		case !isMethodByte(b[i]):
			return protoOther
		}
	}
	return protoOther
}

// isMethodByte holds for what the registered methods consist of. RFC 9110 allows more, but then the banner of an SSH
// client is one.
func isMethodByte(b byte) bool { return b >= 'A' && b <= 'Z' || b == '-' }

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// errSeen ends the handshake that peekServerName begins.
var errSeen = errors.New("client hello seen")

// peekServerName reads the name that a TLS client asks for, in lower case, and puts all that it read back. It is "" for a
// client that names none, or whose first record is not a client hello.
func peekServerName(c *conn) string {
	c.SetReadDeadline(time.Now().Add(handshakeTimeout))
	defer c.SetReadDeadline(time.Time{})
	var read bytes.Buffer
	var name string
	hello := tls.Server(readOnly{Conn: c, r: io.TeeReader(c, &read)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name = h.ServerName
			return nil, errSeen
		},
	})
	_ = hello.Handshake() // always fails, with errSeen at the latest
	c.unread(read.Bytes())
	return strings.ToLower(name)
}

// readOnly is a connection that swallows what is written to it.
type readOnly struct {
	net.Conn
	r io.Reader
}

func (c readOnly) Read(b []byte) (int, error)  { return c.r.Read(b) }
func (c readOnly) Write(b []byte) (int, error) { return len(b), nil }

// certificate implements tls.Config's GetCertificate: for the name that the client asks for, else for what it dialled.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	if c, ok := hello.Conn.(*conn); ok && host == "" {
		host = c.target.host()
	}
	return s.cfg.CA.Certificate(host)
}

// serveTLS passes the connection through unread where its name says so, else terminates TLS and returns what is spoken in it; nil for none.
func (s *Server) serveTLS(c *conn) net.Conn {
	if len(s.pass) > 0 {
		if name := peekServerName(c); s.pass[name] {
			s.passThrough(c, name)
			return nil
		}
	}
	tc := tls.Server(c, s.tls)
	ctx, cancel := context.WithTimeout(s.ctx, handshakeTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		s.tlsRefused(tc, c, handshakeReason(err))
		c.Close()
		return nil
	}
	c.secured = time.Now()
	return tc
}

func (s *Server) tlsRefused(tc *tls.Conn, c *conn, reason string) {
	if s.ctx.Err() != nil {
		return // we ended it, not the program
	}
	host := tc.ConnectionState().ServerName
	if host == "" {
		host = c.target.host()
	}
	s.log.Info("TLS refused by the program", "host", host, "port", c.target.port(), "reason", reason)
	s.refused(&tape.TLSRefused{Host: host, Port: c.target.port(), Reason: reason})
}

// handshakeReason says who ended a handshake: the alert of a client is what it thinks of the recorder's certificate.
func handshakeReason(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), exchange.IsReset(err):
		return "the client closed the connection in the handshake"
	case isTimeout(err):
		return "the handshake was not finished in time"
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Sprintf("the client refused the certificate: %v", op.Err)
	}
	return fmt.Sprintf("the handshake failed: %v", err)
}

// connState implements http.Server's ConnState. Some clients (Node) judge the certificate after the handshake and then
// close: a TLS connection that ends before the first byte of a request, and before our own timeout, is such a refusal.
func (s *Server) connState(nc net.Conn, state http.ConnState) {
	c := unwrap(nc)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.active.Store(true)
	case http.StateClosed:
		if f, ok := nc.(*frames); ok {
			nc = f.Conn
		}
		if tc, ok := nc.(*tls.Conn); ok && !c.active.Load() && time.Since(c.secured) < headerTimeout {
			s.tlsRefused(tc, c, "the client closed the connection after the handshake, before a request")
		}
	}
}

// unwrap finds the program's connection below TLS and HTTP/2; nil for a connection that is not ours.
func unwrap(nc net.Conn) *conn {
	if f, ok := nc.(*frames); ok {
		nc = f.Conn
	}
	if tc, ok := nc.(*tls.Conn); ok {
		nc = tc.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}
