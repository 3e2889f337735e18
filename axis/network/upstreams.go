package network

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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
