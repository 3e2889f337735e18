package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The limits of a connection. None cuts an answer, however long it streams.
const (
	headerTimeout    = time.Minute     // for the whole header of a request
	handshakeTimeout = time.Minute     // for a TLS handshake
	idleTimeout      = 5 * time.Minute // between two requests of one connection
	maxHeader        = 1 << 20         // bytes of a request's header
	maxStreams       = 1000            // concurrent requests of one HTTP/2 connection
)

// For how long others wait for what is given on one connection.
const (
	GiveMost  = time.Second           // until it is written: it goes on the tape first, and the disk may have much to do
	WriteMost = 20 * time.Millisecond // while it is: a program that does not read blocks what it is given
)

// DefaultMaxBody is the longest request body that a Server takes, in bytes, unless Config.MaxBody says otherwise.
const DefaultMaxBody = 64 << 20

// A Config says what a Server does. CA, Names and Tap are required.
type Config struct {
	CA    *CA
	Names *Names        // the same that a DNS answers from
	Tap   *exchange.Tap // every exchange goes through it, recording and answering

	// Book and Blobs make the Server answer from a tape: nothing is resolved or dialled. Without a Book it records.
	Book  *exchange.Book
	Blobs cas.Store
	// Reveal puts the program's own values in the place of the placeholders of an answer: it gets its own bytes, as it did
	// while recording. Nil puts nothing.
	Reveal func(b []byte) []byte
	// Speed is how fast recorded answers come: 0 at once, 1 as recorded, N that many times as fast.
	Speed float64
	// Fork has the run leave the tape at some point: from there on requests may go to their upstreams, as while recording. Nil is a
	// replay to its end.
	Fork *Fork

	// Upstreams sends requests elsewhere while recording: "NAME" (ports 80 and 443) or "NAME:PORT" to the base URL, http
	// or https, that their path is put under. The upstream gets its own host in the Host header.
	Upstreams map[string]string
	// Passthrough are the hosts whose TLS connections are passed through unread while recording, by their SNI. Passed is
	// told the host of each such connection.
	Passthrough []string
	Passed      func(host string)
	// ProxyEnv is the environment ("NAME=value") whose HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case, hold for
	// dialling upstreams; not for Upstreams entries and Passthrough.
	ProxyEnv []string
	Resolver *net.Resolver  // of upstreams' names; nil for the system's
	RootCAs  *x509.CertPool // that upstreams are checked with; nil for the system's

	// Asker returns, for the remote address of a connection, the number of the conversation of the MCP server that opened it; 0 for
	// the program. It is asked once a connection, when its first request begins. Nil stands for the program.
	Asker func(remote net.Addr) uint64
	// Opener returns of the same address the number of the process or thread that opened the connection, 0 where that is not known. It
	// is asked likewise.
	Opener func(remote net.Addr) uint64
	// Giving waits until something, an answer's begin or something else, may be given to the program on the connection of this remote address;
	// given is called when that has been, or never: after GiveMost others go before it. ends says that the connection's end is still to come,
	// which is given with it: that takes what we take, however long. It is asked for what a program acts on: text and its like, and what is not
	// of HTTP. Nil is at once.
	Giving func(remote net.Addr, answer bool) (given func(ends bool))

	MaxBody int64                // bytes of a request body; longer ones get 413. 0 for DefaultMaxBody
	Refused func(kind tape.Kind) // told of every *tape.TLSRefused and *tape.NetRefused; nil for nobody
	Log     *slog.Logger         // gets URLs and errors as they are: it must hide what is secret in them. nil is silent
}

// A Server answers the connections of a program. It must be closed.
type Server struct {
	cfg    Config
	log    *slog.Logger
	ctx    context.Context // of every request; done once Close begins
	cancel context.CancelFunc
	up     *upstream // nil when answering from a tape alone
	pass   map[string]bool
	tls    *tls.Config
	http   *http.Server
	ready  *handoff      // to http
	served chan struct{} // closed when http accepts no more
	life   lifetime      // of accept loops, connections before they are handed over, and handlers
	answer *handler
}

// New makes a Server. The error is that of an Upstreams entry that is none.
func New(cfg *Config) (*Server, error) {
	s := &Server{cfg: *cfg, log: cfg.Log, ready: &handoff{conns: make(chan net.Conn), closed: make(chan struct{})}, served: make(chan struct{}), pass: make(map[string]bool)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.cfg.MaxBody == 0 {
		s.cfg.MaxBody = DefaultMaxBody
	}
	for _, host := range cfg.Passthrough {
		s.pass[cleanName(host)] = true
	}
	if cfg.Book == nil || cfg.Fork != nil && cfg.Fork.Live {
		up, err := newUpstream(cfg)
		if err != nil {
			return nil, err
		}
		s.up = up
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.answer = &handler{cfg: &s.cfg, log: s.log, ctx: s.ctx, life: &s.life, up: s.up}
	if cfg.Book != nil {
		s.answer.tape = &taped{&s.cfg, s.log}
	}
	if cfg.Fork != nil {
		s.answer.fork = &forking{cfg.Fork, s.answer.tape, s.up, s.ctx}
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1", "http/1.0"}, GetCertificate: s.certificate,
		SessionTicketsDisabled: true, // a client looks at its clock when one comes: before the answer in one run, and behind it in another
	}
	s.http = s.newHTTPServer()
	go func() { // stopped by Close, which waits for served
		defer close(s.served)
		_ = s.http.Serve(s.ready)
	}()
	return s, nil
}

func (s *Server) newHTTPServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:   s.answer,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			// All of a request that is taken may come without being allowed in pieces: net/http does that behind what it writes on the stream, and a call
			// whose program reads its answer once it has sent more would wait for ever.
			MaxReceiveBufferPerStream: int(min(s.cfg.MaxBody, math.MaxInt32-1) + 1),
		},
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is the upstream's to answer
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, unwrap(c))
		},
		ConnState: s.connState,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Serve takes the connections of l until Close, and returns nil then. Several listeners may be served at once.
func (s *Server) Serve(l net.Listener) error { return s.life.accept(l, s.accepted) }

// accepted is the goroutine of a connection, which ends by itself within the timeouts, or with Close.
func (s *Server) accepted(raw net.Conn) {
	c := newConn(raw, s.cfg.Names)
	if giving := s.cfg.Giving; giving != nil {
		c.turn.giving = func(answer bool) func(bool) { return giving(raw.RemoteAddr(), answer) }
	}
	c.came.Store(s.cfg.Tap.Ordinal())
	s.take(c, raw)
}

// take finds out what c speaks, and hands it on or closes it. raw leaves the lifetime before it is handed on: who has it then may have to
// read what a program said last, and end would close it.
func (s *Server) take(c *conn, raw net.Conn) {
	var spoken net.Conn // nil where it is no HTTP, and done with
	switch sniff(c) {
	case protoTLS:
		spoken = s.serveTLS(c)
	case protoHTTP:
		spoken = c
	case protoOther:
		s.refuse(c, "not HTTP or TLS")
	case protoNone:
		if c.target.name == "" {
			s.refuse(c, "closed before anything was sent") // an attempt to get out
		} else {
			c.Close() // clients open such ones to names, ahead of a request
		}
	}
	s.life.leave(raw)
	if spoken != nil {
		if speaksFrames(spoken, c) {
			spoken = newFrames(spoken, c)
		}
		s.ready.put(spoken)
	}
}

// refuse closes a connection that cannot be recorded, and says so on the tape.
func (s *Server) refuse(c *conn, reason string) {
	defer c.Close()
	if s.ctx.Err() != nil {
		return // we ended it, not the program
	}
	s.log.Info("connection refused", "host", c.target.host(), "port", c.target.port(), "reason", reason)
	s.refused(&tape.NetRefused{Addr: c.target.host(), Port: c.target.port(), Reason: reason})
}

func (s *Server) refused(kind tape.Kind) {
	if s.cfg.Refused != nil {
		s.cfg.Refused(kind)
	}
}

// Close ends every connection, and returns when every exchange that was under way has been recorded as ended.
func (s *Server) Close() error {
	if s.life.over() {
		return nil
	}
	s.cancel()
	close(s.ready.closed)
	<-s.served
	err := s.http.Close()
	s.life.end()
	if s.up != nil {
		s.up.close()
	}
	return err
}

// A lifetime owns the sockets and goroutines of something that ends. Whatever enters must leave.
type lifetime struct {
	mu     sync.Mutex
	open   map[io.Closer]struct{} // sockets that end closes
	ended  bool
	active sync.WaitGroup // who entered and has not left
}

// enter takes part, with a socket or nil. It reports false once the lifetime has ended; leave must not follow then.
func (l *lifetime) enter(c io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	if c != nil {
		if l.open == nil {
			l.open = make(map[io.Closer]struct{})
		}
		l.open[c] = struct{}{}
	}
	l.active.Add(1)
	return true
}

// leave undoes enter. The socket belongs to the caller again.
func (l *lifetime) leave(c io.Closer) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.active.Done()
}

// end closes the sockets and waits until everybody has left.
func (l *lifetime) end() {
	l.mu.Lock()
	l.ended = true
	for c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.active.Wait()
}

// accept hands the connections of a listener to take, each in a goroutine of its own that has entered, and has to leave, until the lifetime
// ends; then it returns nil.
func (l *lifetime) accept(from net.Listener, take func(net.Conn)) error {
	if !l.enter(from) {
		return from.Close()
	}
	defer l.leave(from)
	for {
		c, err := from.Accept()
		switch {
		case err == nil && l.enter(c):
			go take(c)
		case err == nil:
			c.Close()
		case l.over():
			return nil
		case !isTemporary(err):
			return fmt.Errorf("accept on %s: %w", from.Addr(), err)
		}
	}
}

func (l *lifetime) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// ServeProxy takes the connections of l until Close as those of an HTTP proxy, and returns nil then: where a program
// cannot be put into a network of its own, HTTP_PROXY and HTTPS_PROXY bring it here. A tunnel (CONNECT, RFC 9110, 9.3.6)
// is treated as if the program had dialled its host and port; a request in absolute form is one to its host. There is no
// authentication: l should listen on the loopback.
func (s *Server) ServeProxy(l net.Listener) error {
	h := s.newHTTPServer()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a proxy is spoken to in HTTP/1.1; what runs in a tunnel is another matter
	h.Handler, h.Protocols = http.HandlerFunc(s.proxied), protocols
	h.ConnContext, h.ConnState = nil, nil // these connections are to the proxy, not to a host
	if !s.life.enter(h) {
		return l.Close()
	}
	defer s.life.leave(h)
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// proxied answers one request to the proxy.
func (s *Server) proxied(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		s.tunnel(w, r)
	case r.URL.IsAbs() && r.URL.Scheme == "http":
		s.answer.ServeHTTP(w, r)
	default:
		http.Error(w, "tapedeck: this is the recorder's proxy, which takes CONNECT and http:// requests in absolute form", http.StatusBadRequest)
	}
}

// tunnel takes the connection over as one that was dialled to the host which r names.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request) {
	to, ok := tunnelTarget(r.Host)
	if !ok {
		http.Error(w, "tapedeck: CONNECT wants HOST:PORT", http.StatusBadRequest)
		return
	}
	raw, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.log.Error("a tunnel could not be opened", "host", r.Host, "err", err)
		return
	}
	if !s.life.enter(raw) {
		raw.Close()
		return
	}
	raw.SetDeadline(time.Time{}) // net/http's own for the header
	if _, err := raw.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		raw.Close()
		s.life.leave(raw)
		return
	}
	s.take(&conn{Conn: raw, in: buffered.Reader, target: to}, raw)
}

// tunnelTarget reads the authority of a CONNECT.
func tunnelTarget(authority string) (target, bool) {
	host, portText, err := net.SplitHostPort(authority)
	if err != nil || host == "" {
		return target{}, false
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return target{}, false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return target{addr: netip.AddrPortFrom(a.Unmap(), uint16(port))}, true
	}
	return target{addr: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)), name: cleanName(host)}, true
}

// proxyVars bring a program's requests to a proxy; programs differ in which case they read. Node heeds them from version
// 24 on, where NODE_USE_ENV_PROXY is set.
var proxyVars = []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}

// ProxyEnv returns the environment, "NAME=value", that sends a program's requests to the proxy at addr, "HOST:PORT". Those
// to the loopback, where a program talks to what it started itself, go there only where loopback says so.
func ProxyEnv(addr string, loopback bool) []string {
	env := []string{"NODE_USE_ENV_PROXY=1"}
	if !loopback {
		env = append(env, "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1")
	}
	for _, name := range proxyVars {
		env = append(env, name+"=http://"+addr)
	}
	return env
}
