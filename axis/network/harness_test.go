package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A rig is a Server behind listeners on loopback whose connections say that they were dialled at another address, as a
// jail's do.
type rig struct {
	t     testing.TB
	tap   *testTap // nil where the configuration has a Tap of its own
	names *Names
	srv   *Server
	pool  *x509.CertPool

	mu        sync.Mutex
	listeners map[netip.AddrPort]net.Listener
	refused   []tape.Kind
	gone      chan struct{}  // one token for each of refused
	wrote     func(b []byte) // is told what the Server is about to write to a program in one piece; nil for nobody
}

// newRig starts a Server that records on a new tape, unless change gives it a Tap; change alters its configuration.
func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	g := &rig{t: t, names: new(Names), pool: x509.NewCertPool(), listeners: make(map[netip.AddrPort]net.Listener), gone: make(chan struct{}, 100)}
	ca := newCA(t)
	g.pool.AppendCertsFromPEM(ca.PEM())
	cfg := &Config{CA: ca, Names: g.names, Refused: g.onRefused}
	if change != nil {
		change(cfg)
	}
	if cfg.Tap == nil {
		g.tap = newTestTap(t, cfg.Book != nil)
		cfg.Tap = g.tap.Tap
	}
	srv, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.srv = srv
	t.Cleanup(func() { srv.Close() })
	return g
}

// replayRig starts a Server that answers from what the tap of g recorded. Everything that it could dial fails the test.
func replayRig(g *rig, change func(*Config)) *rig {
	g.t.Helper()
	g.srv.Close()
	forbidden := noDial(g.t)
	return newRig(g.t, func(cfg *Config) {
		cfg.Book, cfg.Blobs = g.tap.book(), g.tap.store
		cfg.Upstreams = map[string]string{"api.example.com": forbidden, "other.example.com": forbidden}
		cfg.ProxyEnv = []string{"HTTP_PROXY=" + forbidden, "HTTPS_PROXY=" + forbidden}
		cfg.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			g.t.Error("a replay resolved a name")
			return nil, net.ErrClosed
		}}
		if change != nil {
			change(cfg)
		}
	})
}

// noDial is the URL of a listener that nobody may connect to.
func noDial(t testing.TB) string {
	l := listenLoopback(t)
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
			t.Error("a replay dialled")
		}
	}()
	return "http://" + l.Addr().String()
}

func listenLoopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (g *rig) onRefused(k tape.Kind) {
	g.mu.Lock()
	g.refused = append(g.refused, k)
	g.mu.Unlock()
	g.gone <- struct{}{}
}

// waitRefused returns the next refusal.
func (g *rig) waitRefused() tape.Kind {
	<-g.gone
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.refused[0]
	g.refused = g.refused[1:]
	return k
}

// real is the loopback address behind the one that a program in a jail would dial.
func (g *rig) real(addr string) string {
	g.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		g.t.Fatal(err)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		if ip, err = g.names.Addr(host); err != nil {
			g.t.Fatal(err)
		}
	}
	dialled := netip.MustParseAddrPort(net.JoinHostPort(ip.String(), port))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listeners[dialled] == nil {
		l := listenLoopback(g.t)
		g.listeners[dialled] = l
		go g.srv.Serve(&jailListener{Listener: l, dialled: net.TCPAddrFromAddrPort(dialled), wrote: g.wrote})
	}
	return g.listeners[dialled].Addr().String()
}

// dial connects as a program in a jail would.
func (g *rig) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", g.real(addr))
}

type jailListener struct {
	net.Listener
	dialled net.Addr
	wrote   func(b []byte)
}

func (l *jailListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &jailConn{Conn: c, dialled: l.dialled, wrote: l.wrote}, nil
}

type jailConn struct {
	net.Conn
	dialled net.Addr
	wrote   func(b []byte)
}

func (c *jailConn) Write(b []byte) (int, error) {
	if c.wrote != nil {
		c.wrote(b)
	}
	return c.Conn.Write(b)
}

func (c *jailConn) LocalAddr() net.Addr { return c.dialled }

func (c *jailConn) NetConn() net.Conn { return c.Conn }

// client is a program's HTTP client that speaks exactly one protocol: "h1", "h2" or "h2c".
func (g *rig) client(protocol string) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(protocol == "h1")
	p.SetHTTP2(protocol == "h2")
	p.SetUnencryptedHTTP2(protocol == "h2c")
	tr := &http.Transport{
		DialContext:        g.dial,
		Protocols:          p,
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{RootCAs: g.pool},
	}
	g.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error // of the request, or of reading the body
}

func ask(c *http.Client, method, url string, body []byte) reply {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	return do(c, req)
}

func do(c *http.Client, req *http.Request) reply {
	res, err := c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: b, err: err}
}
