package bare

import (
	"net"
	"net/url"
	"strings"
)

// URL is the absolute URL as a tape has it: without a user and a fragment, scheme and host in lower case, and without the port
// of the scheme.
func URL(of *url.URL) string {
	u := *of
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if host, port, err := net.SplitHostPort(u.Host); err == nil && port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host = host
		if strings.Contains(host, ":") {
			u.Host = "[" + host + "]"
		}
	}
	if u.Path == "" && u.Opaque == "" {
		u.Path = "/"
	}
	return u.String()
}
