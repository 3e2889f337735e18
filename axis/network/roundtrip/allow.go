package roundtrip

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
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

// A DeniedError says that a request was not let out, and that no tape is there to answer it. Nothing was sent, and no name was
// resolved.
type DeniedError struct {
	Call        int    // its number among all requests of the Transport, from 1
	Method, URL string // what was asked, scrubbed
	Host        string // of the URL, with its port where that is not the scheme's: what Allow would have to name
	From        string // of a redirect: the URL that led here; "" for none
}

func (e *DeniedError) Error() string {
	text := fmt.Sprintf("network denied: call %d asked %s %s", e.Call, e.Method, e.URL)
	if e.From != "" {
		text += ", to which " + e.From + " redirects"
	}
	return text + "; answer it from a recording or a tape (--net REC, Config.Net.Tape), or let it out (--net allow=" + e.Host +
		", Config.Net.Allow)"
}

// An UnmatchedError says that the tape does not answer a request. Nothing was sent.
type UnmatchedError struct {
	Tape        string // its name
	Call        int    // the number of the request among all of the Transport, from 1
	Method, URL string // what was asked, scrubbed
	// Nearest is the recorded request that is most like it, nil where the tape holds none to its host. Why says what differs,
	// or that it was asked more often than it was recorded.
	Nearest *exchange.Recorded
	Why     string
	// Asked is the record that the exchange would have, without an answer, and Identity what was matched of it.
	Asked    tape.Kind
	Identity *exchange.Identity
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("not on the tape %s: call %d asked %s %s; %s; undo what changed the request, or record again",
		e.Tape, e.Call, e.Method, e.URL, e.Why)
}

// An AllowError says that an entry of Options.Allow is no host.
type AllowError struct{ Entry string }

func (e *AllowError) Error() string {
	want := "want HOST or HOST:PORT"
	if strings.Contains(e.Entry, "*") {
		want = "names are exact, write each: " + want
	}
	return fmt.Sprintf("allow %q: %s", e.Entry, want)
}
