package roundtrip

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// allowed are hosts as hostPort has them.
type allowed map[string]bool

// schemePorts are the ports that need not be named.
var schemePorts = map[string]string{"http": "80", "https": "443"}

// parseAllow reads Options.Allow. The error is an *AllowError.
func parseAllow(entries []string) (allowed, error) {
	a := make(allowed, len(entries))
	for _, entry := range entries {
		host, port, ok := splitHost(entry)
		if !ok {
			return nil, &AllowError{Entry: entry}
		}
		a[host+" "+port] = true
	}
	return a, nil
}

// splitHost takes a host and its port apart, "" for none. An address of IPv6 is in the one form that it has.
func splitHost(s string) (host, port string, ok bool) {
	host = strings.ToLower(s)
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String(), "", true
	}
	if h, p, err := net.SplitHostPort(host); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", "", false
		}
		host, port = h, p
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String(), port, true
	}
	return host, port, host != "" && !strings.ContainsAny(host, " \t*/:@?#[]%,")
}

// has reports whether a host of a URL is named: by its port, or without one where that is the scheme's.
func (a allowed) has(scheme, urlHost string) bool {
	host, port, ok := splitHost(urlHost)
	if !ok {
		return false
	}
	usual := schemePorts[strings.ToLower(scheme)]
	if port == "" {
		port = usual
	}
	return a[host+" "+port] || port != "" && port == usual && a[host+" "]
}

// hostToAllow is the entry that lets a host of a URL out.
func hostToAllow(scheme, urlHost string) string {
	host, port, ok := splitHost(urlHost)
	switch {
	case !ok:
		return urlHost
	case port == "" || port == schemePorts[strings.ToLower(scheme)]:
		return host
	}
	return net.JoinHostPort(host, port)
}

// dialTimeout bounds the connect of one address, and a TLS handshake.
const dialTimeout = 30 * time.Second

// ownTransport is what sends where nothing else is given: it asks no proxy.
func ownTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ForceAttemptHTTP2:     true,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        readSize,
	}
}
