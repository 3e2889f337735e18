package network

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// readSize bounds one read of an upstream's body, and with it a chunk, in bytes.
const readSize = 32 << 10

// An upstream sends requests to their real hosts. It owns its idle connections.
type upstream struct {
	named    upstreams
	guard    *guard
	resolver *net.Resolver
	real     *routes // guarded, through the proxies of the environment
	given    *routes // to the URLs of Upstreams entries, which their user answers for
}

// routes are the transports of one way out: for most requests, for those for a WebSocket, and for HTTP/2 with prior knowledge.
type routes struct{ plain, socket, clear *http.Transport }

func routesOf(t *http.Transport) *routes { return &routes{t, socketTransport(t), clearTransport(t)} }

func newUpstream(cfg *Config) (*upstream, error) {
	named, err := parseUpstreams(cfg.Upstreams)
	if err != nil {
		return nil, err
	}
	u := &upstream{named: named, guard: &guard{allowed: named.addrs(), own: ownAddrs()}, resolver: cfg.Resolver}
	real, proxies := newTransport(cfg, u.guard.dialer(cfg.Resolver)), proxyConfig(cfg.ProxyEnv)
	real.Proxy = proxyFunc(proxies)
	u.guard.allowProxies(proxies)
	u.real, u.given = routesOf(real), routesOf(newTransport(cfg, &net.Dialer{Timeout: dialTimeout, Resolver: cfg.Resolver}))
	return u, nil
}

// clearTransport is t for HTTP/2 in clear with prior knowledge. No proxy passes that on, so it asks none.
func clearTransport(t *http.Transport) *http.Transport {
	c := t.Clone()
	c.Proxy = nil
	c.Protocols = new(http.Protocols)
	c.Protocols.SetUnencryptedHTTP2(true)
	return c
}

// newTransport makes a transport that leaves bodies as they come. It has no timeout for an answer: a model thinks for
// minutes, and the program has its own.
func newTransport(cfg *Config, dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
		TLSHandshakeTimeout:   dialTimeout,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        readSize,
	}
}

// proxyConfig reads the proxy variables of env, of each in upper case before that in lower case.
func proxyConfig(env []string) *httpproxy.Config {
	vars := make(map[string]string)
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	either := func(name string) string { return cmp.Or(vars[name], vars[strings.ToLower(name)]) }
	return &httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
}

// proxyFunc returns what a transport asks for its proxy.
func proxyFunc(c *httpproxy.Config) func(*http.Request) (*url.URL, error) {
	proxy := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
}

// allowProxies lets the guard reach the proxies that c names by a literal address or as localhost: whoever runs the recorder
// has named them.
func (g *guard) allowProxies(c *httpproxy.Config) {
	for _, raw := range []string{c.HTTPProxy, c.HTTPSProxy} {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			continue
		}
		for _, host := range []string{u.Hostname(), "127.0.0.1", "::1"} {
			if host != u.Hostname() && u.Hostname() != "localhost" {
				continue
			}
			if a, err := netip.ParseAddr(host); err == nil {
				g.allowed[netip.AddrPortFrom(a.Unmap(), portOf(u))] = true
			}
		}
	}
}

// fetch sends a request on, of a gRPC call with in, its body as it comes, and returns what came. It follows no redirect. Where no answer
// came, status is 0.
//
// An http upstream is spoken to in HTTP/2 with prior knowledge for a gRPC call, which there is no other way for, and for what came so
// itself and reads trailers.
func (u *upstream) fetch(r *http.Request, req *exchange.Request, in *incoming, to *url.URL) *answer {
	trails := trailing(r)
	res, err := u.send(r.Context(), req, to, sending{body: in, clear: isGRPC(r) || trails && r.ProtoMajor == 2 && r.TLS == nil})
	a := dead(err)
	if err == nil {
		a = answerOf(res, trails)
	}
	a.asked = in
	return a
}

// answerOf is what an upstream answered.
func answerOf(res *http.Response, trails bool) *answer {
	if res.StatusCode < 200 {
		res.Body.Close()
		return dead(&unexpectedStatus{code: res.StatusCode})
	}
	a := &answer{status: res.StatusCode, header: exchange.EndToEnd(res.Header), length: res.ContentLength}
	a.prompt = res.StatusCode >= http.StatusBadRequest // who tries again may do so as soon as it knows the status
	a.body, a.trailer, a.trails = &upstreamBody{r: res.Body}, &res.Trailer, trails || len(res.Trailer) > 0
	return a
}

// sending is how a request is sent on.
type sending struct {
	socket bool      // it asks for a WebSocket
	body   *incoming // in the place of the request's; nil for that
	clear  bool      // to an http upstream it goes in HTTP/2 with prior knowledge
}

// send sends a request on.
func (u *upstream) send(ctx context.Context, req *exchange.Request, to *url.URL, how sending) (*http.Response, error) {
	by, dest := u.real, to
	if base := u.named.find(to.Hostname(), portOf(to)); base != nil {
		by, dest = u.given, under(base, to)
	} else if err := u.guard.checkHost(to.Hostname(), portOf(to)); err != nil {
		return nil, err
	}
	transport, passed := by.plain, exchange.EndToEnd
	switch {
	case how.socket:
		transport, passed = by.socket, upgradeHeader
	case how.clear && dest.Scheme == "http":
		transport = by.clear
	}
	out, err := http.NewRequestWithContext(ctx, req.Method, "", bytes.NewReader(req.Body))
	if err != nil {
		return nil, err
	}
	out.URL, out.Host = dest, dest.Host
	out.Header = passed(req.Header)
	out.Header.Del("Expect")                             // the whole body is here
	out.Header.Del("Content-Length")                     // net/http writes it from the body
	if exchange.HasToken(req.Header, "Te", "trailers") { // the program reads trailers: a gRPC server refuses a call without
		out.Header["Te"] = []string{"trailers"}
	}
	reduceEncodings(out.Header)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // else net/http sends its own
	}
	if how.body != nil {
		out.Body, out.ContentLength, out.GetBody = how.body, -1, nil
	}
	return transport.RoundTrip(out)
}

func (u *upstream) close() {
	for _, r := range []*routes{u.real, u.given} {
		r.plain.CloseIdleConnections()
		r.socket.CloseIdleConnections()
		r.clear.CloseIdleConnections()
	}
}

// upstreamBody makes one chunk of each read.
type upstreamBody struct {
	r   io.ReadCloser
	buf *[]byte // from readBuffers; nil before the first read
}

// readBuffers holds what answers are read into, readSize bytes each.
var readBuffers = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

// Next implements body.
func (b *upstreamBody) Next(context.Context) ([]byte, error) {
	if b.buf == nil {
		b.buf = readBuffers.Get().(*[]byte)
	}
	n, err := b.r.Read(*b.buf)
	return (*b.buf)[:n], err
}

// Close implements body.
func (b *upstreamBody) Close() error {
	if b.buf != nil {
		readBuffers.Put(b.buf)
		b.buf = nil
	}
	return b.r.Close()
}

// upstreams says where the requests for a host go instead.
type upstreams map[string]*url.URL // by "name" or "name:port", in lower case

// parseUpstreams checks the entries of Config.Upstreams.
func parseUpstreams(given map[string]string) (upstreams, error) {
	out := make(upstreams, len(given))
	for name, raw := range given {
		u, err := url.Parse(raw)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("upstream %s: want http://HOST[:PORT][/PREFIX] or https://… as its URL, for WebSockets too, have %q", visible.WithoutUser(name), visible.WithoutUser(raw))
		}
		key, err := upstreamKey(name)
		if err != nil {
			return nil, err
		}
		out[key] = u
	}
	return out, nil
}

// upstreamKey checks NAME or NAME:PORT. NAME may be a literal address; an IPv6 one with a port stands in brackets.
func upstreamKey(name string) (string, error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		host, port = strings.Trim(name, "[]"), ""
	}
	if _, perr := strconv.ParseUint(port, 10, 16); port != "" && perr != nil || host == "" {
		return "", fmt.Errorf("upstream %q: want NAME or NAME:PORT", visible.WithoutUser(name))
	}
	if port == "" {
		return cleanName(host), nil
	}
	return net.JoinHostPort(cleanName(host), port), nil
}

// find returns the base URL for a host and port; nil for none. An entry without a port holds for 80 and 443.
func (us upstreams) find(host string, port uint16) *url.URL {
	if u := us[net.JoinHostPort(host, strconv.Itoa(int(port)))]; u != nil {
		return u
	}
	if port == 80 || port == 443 {
		return us[host]
	}
	return nil
}

// addrs are the literal addresses that the entries name.
func (us upstreams) addrs() map[netip.AddrPort]bool {
	out := make(map[netip.AddrPort]bool)
	for _, u := range us {
		if a, err := netip.ParseAddr(u.Hostname()); err == nil {
			out[netip.AddrPortFrom(a.Unmap(), portOf(u))] = true
		}
	}
	return out
}

// UpstreamOf is the URL that an entry of Config.Upstreams gives for the host of u; "" where none does, or one is no URL. Its
// user and password are left out.
func UpstreamOf(given map[string]string, u *url.URL) string {
	us, err := parseUpstreams(given)
	if err != nil {
		return ""
	}
	to := us.find(cleanName(u.Hostname()), portOf(u))
	if to == nil {
		return ""
	}
	shown := *to
	shown.User = nil
	return shown.String()
}

// under returns u with its scheme and host taken from base, and its path put below base's.
func under(base, u *url.URL) *url.URL {
	out := *u
	out.Scheme, out.Host, out.User = base.Scheme, base.Host, base.User
	if prefix := strings.TrimSuffix(base.EscapedPath(), "/"); prefix != "" {
		out.RawPath = prefix + u.EscapedPath()
		out.Path = strings.TrimSuffix(base.Path, "/") + u.Path
	}
	return &out
}

// portOf is the port of an absolute http or https URL.
func portOf(u *url.URL) uint16 {
	if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint16(p)
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// hostPort is how a URL names a host: in brackets where it is an IPv6 address, with the port where it is not the
// scheme's own.
func hostPort(scheme, host string, port uint16) string {
	if scheme == "http" && port == 80 || scheme == "https" && port == 443 {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// CheckUpstreams returns the error of the first entry of Config.Upstreams that is none.
func CheckUpstreams(given map[string]string) error {
	_, err := parseUpstreams(given)
	return err
}

// dialTimeout bounds the connect of one address.
const dialTimeout = 30 * time.Second

// A ForbiddenError says that the recorder was asked to reach an address of its own host's inside.
type ForbiddenError struct {
	Addr netip.AddrPort
}

// OnlyNamed ends the text of a ForbiddenError, and with it that of an exchange on a tape.
const OnlyNamed = "which is dialled only where an upstream names it"

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s is a loopback, link-local, multicast or unspecified address or one of this host, %s", e.Addr, OnlyNamed)
}

// forbidden holds for what reaches the recorder's own host, or everybody on its link.
func forbidden(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsValid() || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() ||
		a.Is4() && a.As4()[0] == 0
}

// A guard decides on addresses after resolution: on what is really dialled, so that a name that changes its address
// between a check and a dial gains nothing.
type guard struct {
	allowed map[netip.AddrPort]bool // literal addresses that an Upstreams entry names, or a proxy variable
	own     map[netip.Addr]bool     // of the host's own interfaces: as much its inside as the loopback is
}

// ownAddrs are the addresses of the host's interfaces. Where they cannot be listed there are none.
func ownAddrs() map[netip.Addr]bool {
	out := make(map[netip.Addr]bool)
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return out
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out[p.Addr().Unmap()] = true
		}
	}
	return out
}

func (g *guard) forbids(ap netip.AddrPort) bool {
	return (forbidden(ap.Addr()) || g.own[ap.Addr().Unmap()]) && !g.allowed[ap]
}

// dialer returns a dialer that reaches no forbidden address.
func (g *guard) dialer(resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Resolver: resolver, ControlContext: g.check}
}

// check implements net.Dialer's ControlContext. The error is a *ForbiddenError.
func (g *guard) check(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %q: %w", address, err)
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	if g.forbids(ap) {
		return &ForbiddenError{Addr: ap}
	}
	return nil
}

// checkHost refuses a literal forbidden address before anything is dialled: a proxy would go there for us.
func (g *guard) checkHost(host string, port uint16) error {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // a name: check sees what it resolves to
	}
	if ap := netip.AddrPortFrom(a.Unmap(), port); g.forbids(ap) {
		return &ForbiddenError{Addr: ap}
	}
	return nil
}

// passThrough splices a TLS connection to its real host, unread. On replay it is refused: its bytes are on no tape.
func (s *Server) passThrough(c *conn, host string) {
	if s.up == nil || s.cfg.Fork != nil {
		s.refuse(c, "passed through unread while recording, so it cannot be replayed")
		return
	}
	defer c.Close()
	if s.cfg.Passed != nil {
		s.cfg.Passed(host)
	}
	up, err := s.up.dialRaw(s.ctx, host, c.target.addr.Port())
	if err != nil {
		s.refuse(c, "passthrough: "+errorText(err))
		return
	}
	defer up.Close()
	splice(s.ctx, c, up)
}

// splice copies both ways until both sides have ended, passing half-closes on, or until ctx is done.
func splice(ctx context.Context, a *conn, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { a.Close(); b.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { halfCopy(b, a) })
	both.Go(func() { halfCopy(a.Conn, b) })
	both.Wait()
}

// halfCopy copies one way and then tells dst that no more comes.
func halfCopy(dst net.Conn, src io.Reader) {
	_, err := io.Copy(dst, src)
	if cw, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		cw.CloseWrite()
		return
	}
	dst.Close()
}

// dialRaw connects to a host, or to the host and port that its Upstreams entry names.
func (u *upstream) dialRaw(ctx context.Context, host string, port uint16) (net.Conn, error) {
	dialer := u.guard.dialer(u.resolver)
	if base := u.named.find(host, port); base != nil {
		host, port = base.Hostname(), portOf(base)
		dialer.ControlContext = nil
	}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
}
