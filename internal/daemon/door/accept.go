package door

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
)

// serveHTTP looks at each request before anybody else does.
func (d *Door) serveHTTP(w http.ResponseWriter, r *http.Request) {
	p := peerOf(r)
	if !d.mayHost(p, r.Host, localAddr(r)) {
		d.refuse("host", p)
		http.Error(w, "this host name is not the daemon's: use its address, or localhost", http.StatusMisdirectedRequest)
		return
	}
	if !d.mayOrigin(p, r.Header["Origin"], localAddr(r)) {
		d.refuse("origin", p)
		http.Error(w, "web pages of this origin may not talk to the daemon", http.StatusForbidden)
		return
	}
	if r.URL.Path != "/" || !upgrades(r) {
		d.serveOther(w, r)
		return
	}
	p.Transport = "websocket"
	d.converse(r.Context(), p, func() (jsonrpc.Stream, error) { return accept(w, r, &d.o.WebSocket) }, func() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many connections: try again later", http.StatusServiceUnavailable)
	})
}

func accept(w http.ResponseWriter, r *http.Request, o *websock.Options) (jsonrpc.Stream, error) {
	s, err := websock.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d *Door) serveOther(w http.ResponseWriter, r *http.Request) {
	switch {
	case d.o.HTTP != nil && r.URL.Path != "/":
		d.o.HTTP.ServeHTTP(w, r)
	case r.URL.Path == "/":
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "this is a WebSocket endpoint: JSON-RPC 2.0 in text messages", http.StatusUpgradeRequired)
	default:
		http.NotFound(w, r)
	}
}

// upgrades reports whether a request asks for a WebSocket, well or badly.
func upgrades(r *http.Request) bool {
	for _, v := range r.Header["Upgrade"] {
		if strings.EqualFold(strings.TrimSpace(v), "websocket") {
			return true
		}
	}
	return false
}

// peerOf returns who sent a request.
func peerOf(r *http.Request) Peer {
	p := Peer{Transport: "http", Addr: r.RemoteAddr}
	if c, ok := r.Context().Value(connKey{}).(*unixConn); ok {
		p = c.peer
		p.Transport = "http"
	}
	return p
}

// localAddr returns the address that a request came to.
func localAddr(r *http.Request) netip.AddrPort {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// mayHost reports whether host, of a Host header, is this daemon's.
func (d *Door) mayHost(p Peer, host string, local netip.AddrPort) bool {
	return p.Unix || d.ours(host, "80", local)
}

// mayOrigin reports whether a request may come from that origin.
func (d *Door) mayOrigin(p Peer, origins []string, local netip.AddrPort) bool {
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	if len(origins) > 1 || err != nil || u.Host == "" || u.User != nil || u.Path != "" {
		return false
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if p.Unix {
		return u.Scheme == "http" && u.Host == "localhost"
	}
	return port != "" && d.ours(u.Host, port, local)
}

// ours reports whether host:port names the address that a connection came to.
func (d *Door) ours(hostport, port string, local netip.AddrPort) bool {
	host := strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	if h, p, err := net.SplitHostPort(hostport); err == nil {
		host, port = h, p
	}
	host = strings.ToLower(host)
	if !local.IsValid() || port != strconv.Itoa(int(local.Port())) {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		return ip == local.Addr() || ip.IsLoopback() && local.Addr().IsLoopback()
	}
	if host == "localhost" {
		return local.Addr().IsLoopback()
	}
	named, _, err := net.SplitHostPort(d.o.Listen)
	return err == nil && host != "" && host == strings.ToLower(named)
}

// acceptUnix takes connections of the socket until it is closed.
func (d *Door) acceptUnix(ctx context.Context) error {
	for {
		c, err := d.unix.Accept()
		if err != nil {
			if transient(err) {
				time.Sleep(50 * time.Millisecond) // out of descriptors: some will be given back
				continue
			}
			return err
		}
		d.wg.Add(1)
		go func() {
			defer d.wg.Done()
			d.greet(ctx, c)
		}()
	}
}

// greet finds out who a connection is and what it speaks.
func (d *Door) greet(ctx context.Context, c net.Conn) {
	peer, err := credentials(c)
	if err != nil {
		d.log.Warn("a peer has no credentials", "error", err)
		d.refuse("credentials", peer)
		_ = c.Close()
		return
	}
	counted := d.count(c)
	if counted == nil {
		return
	}
	conn := &unixConn{countedConn: counted, r: bufio.NewReaderSize(counted, 4<<10), peer: peer}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	first, err := conn.r.Peek(1)
	if !stop() || err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if 'A' <= first[0] && first[0] <= 'Z' {
		d.hand.give(conn)
		return
	}
	d.lines(ctx, conn)
}

// lines holds a conversation in lines.
func (d *Door) lines(ctx context.Context, conn *unixConn) {
	p := conn.peer
	p.Transport = "lines"
	open := func() (jsonrpc.Stream, error) {
		return jsonrpc.NewLines(conn, d.o.WebSocket.Limit, d.o.WebSocket.Budget), nil
	}
	d.converse(ctx, p, open, func() {
		_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"too many connections: try again later"}}`+"\n")
		_ = conn.Close()
	})
}

// A unixConn is a connection of the socket, of which a little may have been read.
type unixConn struct {
	*countedConn
	r    *bufio.Reader // nil once it is empty and not needed any more
	peer Peer
}

func (c *unixConn) Read(p []byte) (int, error) {
	if c.r != nil {
		if c.r.Buffered() > 0 {
			return c.r.Read(p)
		}
		c.r = nil
	}
	return c.countedConn.Read(p)
}

// handed is a listener whose connections somebody else accepted.
type handed struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (h *handed) give(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		_ = c.Close()
	}
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *handed) Addr() net.Addr { return h.addr }

var errForeign = errors.New("the peer is another user")
