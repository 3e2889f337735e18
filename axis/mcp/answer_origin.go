package mcp

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// ownPages refuses requests that a browser sends for a page of another host.
func ownPages(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if foreign(r) {
			http.Error(w, "this origin may not talk with the server", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// foreign reports whether a browser sends r for a page of another host. A page that has had its name lead to this host is told from one
// by the name that it has here: one of the loopback's listeners has no other than its own.
func foreign(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLoopback(local.String()) && !isLoopback(r.Host) {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host && !isLoopback(u.Host)
}

// isLoopback reports whether a host, with a port or without, is this one's loopback.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
