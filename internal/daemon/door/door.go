// Package door lets clients in: listeners, the checks of an upgrade, peers' credentials.
//
// Goals: whoever comes in is who may: a program of this machine's user over the Unix socket, a program that can name a token over
// TCP (the daemon asks for it), never a web page. What a connection speaks beyond JSON frames is not its business.
//
// # Over TCP
//
// HTTP/1.1. The path / upgrades to a WebSocket (package websock, no compression); every other path is Options.HTTP's. Each
// request is looked at first:
//
//	Host     an IP literal that is the connection's own local address, or localhost on a loopback address, or the name
//	         that Options.Listen gave, with our port; anything else is 421: a web page whose name was rebound to this address
//	         carries its own name
//	Origin   absent, or http(s):// with a host that would pass for Host; anything else is 403
//
// # Over the Unix socket
//
// The socket's mode is 0600, and the peer's credentials must be this user's or root's; anybody else is cut off unheard. The
// first byte decides: an upper-case letter begins an HTTP request (a WebSocket over the socket, metrics), anything else JSON
// texts, one a line. There any Host will do; an Origin must be http://localhost.
//
// A socket file on which nobody answers is replaced. One on which somebody answers is an error, and so is a file that is no
// socket.
//
// # Bounds
//
// Options.Connections conversations at once, beyond that an upgrade is answered 503 and lines with one error; twice that many
// connections of any kind, and no more than half of the descriptors that the process may have. A request's header is at most
// 16 KiB and must be there within 10 s.
//
// # Ownership
//
// Serve accepts and waits for all that it started: each conversation runs in a goroutine of its own, with a context that ends
// with Serve's. Stop closes the listeners and lets conversations go on.
package door

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
)

// Options say where to listen and who talks. Zero fields have the defaults named beside them.
type Options struct {
	// Listen is host:port for TCP; port 0 takes a free one. "" listens on no TCP address.
	Listen string
	// Socket is the path of a Unix socket; "" for none.
	Socket string
	// Converse holds one conversation, and returns when it is over; the stream is closed after it, if it is not yet. It must be
	// set.
	Converse func(ctx context.Context, s jsonrpc.Stream, p Peer)
	// HTTP answers requests that upgrade to nothing: /healthz, /metrics; nil answers 404.
	HTTP http.Handler
	// WebSocket has the limit of a frame, the budget and the pings; the first two hold for lines too.
	WebSocket websock.Options
	// Connections is how many conversations there are at once, 4,096; fewer where the process may have few descriptors.
	Connections int
	Logger      *slog.Logger // nil is silent
	// Refused is called with a word for each connection or request that is turned away: host, origin, full, credentials. nil is
	// for nobody.
	Refused func(why string)
}

// A Peer is who came in.
type Peer struct {
	Transport string // "websocket" or "lines"
	Unix      bool   // over the Unix socket; UID and PID are known then
	Addr      string // of TCP
	UID       int
	PID       int // 0 where the system does not say
}

func (p Peer) String() string {
	if p.Unix {
		return fmt.Sprintf("%s uid %d pid %d", p.Transport, p.UID, p.PID)
	}
	return p.Transport + " " + p.Addr
}

// A Door listens.
type Door struct {
	o      Options
	log    *slog.Logger
	tcp    net.Listener // nil for none
	unix   net.Listener // nil for none
	socket fileID       // of the socket's file
	most   int          // connections of any kind
	http   *http.Server

	talking atomic.Int64 // conversations
	open    atomic.Int64 // connections of any kind
	wg      sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	hand    *handed // Unix connections for the HTTP server
}

// Open listens; nothing is accepted before Serve. o must have Converse, and Listen or Socket.
func Open(ctx context.Context, o *Options) (*Door, error) {
	d := &Door{o: *o, log: o.Logger}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.bound(cmp.Or(d.o.Connections, 4096))
	if o.Converse == nil || o.Listen == "" && o.Socket == "" {
		return nil, errors.New("open the door: want Converse, and an address or a socket to listen on")
	}
	var err error
	if o.Listen != "" {
		if d.tcp, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", o.Listen, err)
		}
	}
	if o.Socket != "" {
		if d.unix, d.socket, err = listenUnix(o.Socket); err != nil {
			if d.tcp != nil {
				_ = d.tcp.Close()
			}
			return nil, fmt.Errorf("listen on the socket %s: %w", o.Socket, err)
		}
		d.hand = &handed{addr: d.unix.Addr(), conns: make(chan net.Conn), done: make(chan struct{})}
	}
	d.http = &http.Server{
		Handler:           http.HandlerFunc(d.serveHTTP),
		ReadHeaderTimeout: patience,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    12 << 10, // the server adds 4 KiB to it
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	return d, nil
}

// bound sets how many connections are let in of as many as are wanted.
func (d *Door) bound(wanted int) {
	may := Descriptors()
	d.o.Connections, d.most = room(wanted, may)
	if d.o.Connections < wanted {
		d.log.Warn("fewer connections than wanted are let in, for this process may have few files open (ulimit -n)",
			"connections", d.o.Connections, "wanted", wanted, "descriptors", may)
	}
}

// room is how many conversations, and connections of any kind, take no more than half of the descriptors: who writes files has
// the rest, whoever comes.
func room(wanted, descriptors int) (talking, all int) {
	all = min(2*wanted, max(descriptors/2, 2))
	return min(wanted, all-all/8), all
}

// patience is how long a peer has to say what it wants.
const patience = 10 * time.Second

// Addr returns the TCP address listened on, as host:port with the port that was taken; "" for none.
func (d *Door) Addr() string {
	if d.tcp == nil {
		return ""
	}
	return d.tcp.Addr().String()
}

// URL is where clients reach it: ws://host:port, or unix:PATH when it listens on a socket alone.
func (d *Door) URL() string {
	if d.tcp == nil {
		return "unix:" + d.o.Socket
	}
	return "ws://" + d.Addr()
}

// Talking returns how many conversations there are.
func (d *Door) Talking() int { return int(d.talking.Load()) }

// Serve lets clients in until ctx ends or Stop is called, and returns when all conversations are over: those that are there when
// ctx ends have their context ended. The error is that of a listener that failed.
func (d *Door) Serve(ctx context.Context) error {
	end := context.AfterFunc(ctx, func() { d.Stop(); _ = d.http.Close() })
	defer end()
	d.http.BaseContext = func(net.Listener) context.Context { return ctx }
	d.http.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	errs := make(chan error, 3)
	accepting := 0
	start := func(serve func() error) {
		accepting++
		go func() { errs <- serve() }()
	}
	if d.tcp != nil {
		start(func() error { return d.http.Serve(counted{d.tcp, d}) })
	}
	if d.unix != nil {
		start(func() error { return d.http.Serve(d.hand) })
		start(func() error { return d.acceptUnix(ctx) })
	}
	var err error
	for range accepting {
		if e := <-errs; !errors.Is(e, net.ErrClosed) && !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
			d.Stop()
		}
	}
	d.wg.Wait()
	_ = d.http.Close() // connections on which nothing is asked
	return err
}

type connKey struct{}

// Stop closes the listeners and removes the socket's file. Conversations go on.
func (d *Door) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.stopped = true
	if d.tcp != nil {
		_ = d.tcp.Close()
	}
	if d.unix != nil {
		_ = d.unix.Close()
		_ = d.hand.Close()
		if d.socket.same(d.o.Socket) {
			_ = os.Remove(d.o.Socket)
		}
	}
}

// converse holds one conversation, if there is room for it.
func (d *Door) converse(ctx context.Context, p Peer, accept func() (jsonrpc.Stream, error), full func()) {
	if !d.enter() {
		full()
		return
	}
	defer d.wg.Done()
	if d.talking.Add(1) > int64(d.o.Connections) {
		d.talking.Add(-1)
		d.refuse("full", p)
		full()
		return
	}
	defer d.talking.Add(-1)
	s, err := accept()
	if err != nil {
		d.log.Info("a connection did not upgrade", "peer", p.String(), "error", err)
		return
	}
	defer s.Close(0, "")
	d.o.Converse(ctx, s, p)
}

// enter lets Serve wait for one conversation more, unless it may have stopped to wait.
func (d *Door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.wg.Add(1)
	return true
}

func (d *Door) refuse(why string, p Peer) {
	d.log.Warn("a connection was refused", "why", why, "peer", p.String())
	if d.o.Refused != nil {
		d.o.Refused(why)
	}
}

// counted bounds the connections of any kind.
type counted struct {
	net.Listener
	d *Door
}

func (l counted) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn := l.d.count(c); conn != nil {
			return conn, nil
		}
	}
}

// count lets a connection in, or closes it and returns nil where there are too many.
func (d *Door) count(c net.Conn) *countedConn {
	if d.open.Add(1) <= int64(d.most) {
		return &countedConn{Conn: c, open: &d.open}
	}
	d.open.Add(-1)
	d.refuse("full", Peer{Addr: c.RemoteAddr().String()})
	_ = c.Close()
	return nil
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// CloseWrite says that nothing more will be written.
func (c *countedConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// A fileID remembers which file was put in place.
type fileID struct{ info fs.FileInfo }

// same reports whether path is still that file.
func (f fileID) same(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && f.info != nil && os.SameFile(info, f.info)
}
