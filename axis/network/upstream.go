package network

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
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
	if err != nil {
		return dead(err)
	}
	return answerOf(res, trails)
}

// answerOf is what an upstream answered.
func answerOf(res *http.Response, trails bool) *answer {
	if res.StatusCode < 200 {
		res.Body.Close()
		return dead(&unexpectedStatus{code: res.StatusCode})
	}
	a := &answer{status: res.StatusCode, header: exchange.EndToEnd(res.Header), length: res.ContentLength}
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
	out, err := outgoing(ctx, req, dest, passed)
	if err != nil {
		return nil, err
	}
	if how.body != nil {
		out.Body, out.ContentLength, out.GetBody = how.body, -1, nil
	}
	return transport.RoundTrip(out)
}

// outgoing makes the request that leaves, from the one that the program sent.
func outgoing(ctx context.Context, req *exchange.Request, dest *url.URL, passed func(http.Header) http.Header) (*http.Request, error) {
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
	return out, nil
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
