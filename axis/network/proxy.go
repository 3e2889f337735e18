package network

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// ServeProxy takes the connections of l until Close as those of an HTTP proxy, and returns nil then: where a program
// cannot be put into a network of its own, HTTP_PROXY and HTTPS_PROXY bring it here. A tunnel (CONNECT, RFC 9110, 9.3.6)
// is treated as if the program had dialled its host and port; a request in absolute form is one to its host. There is no
// authentication: l should listen on the loopback.
func (s *Server) ServeProxy(l net.Listener) error {
	h := s.newProxyServer()
	if !s.life.enter(h) {
		return l.Close()
	}
	defer s.life.leave(h)
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) newProxyServer() *http.Server {
	h := s.newHTTPServer()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a proxy is spoken to in HTTP/1.1; what runs in a tunnel is another matter
	h.Handler, h.Protocols = http.HandlerFunc(s.proxied), protocols
	h.ConnContext, h.ConnState = nil, nil // these connections are to the proxy, not to a host
	return h
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
	defer s.life.leave(raw)
	raw.SetDeadline(time.Time{}) // net/http's own for the header
	if _, err := raw.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		raw.Close()
		return
	}
	s.take(&conn{Conn: raw, in: buffered.Reader, target: to})
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
