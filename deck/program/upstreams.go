package program

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ollamaPort is where a server of local models listens, on whatever host: served without being asked for.
const ollamaPort = 11434

// Ports lists the ports beside 80 and 443 that are served: Ollama's, and those that upstreams, keyed by
// NAME[:PORT], ask for; in ascending order.
func Ports(upstreams map[string]string) []uint16 {
	out := []uint16{ollamaPort}
	for name := range upstreams {
		_, port, err := net.SplitHostPort(name)
		if err != nil {
			continue // no port in it: 80 and 443
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || n == 80 || n == 443 || slices.Contains(out, uint16(n)) {
			continue
		}
		out = append(out, uint16(n))
	}
	slices.Sort(out)
	return out
}

// NamesLoopback reports whether an upstream, keyed by NAME[:PORT], answers for an address of the loopback: then requests to
// it must come to the recorder.
func NamesLoopback(upstreams map[string]string) bool {
	for name := range upstreams {
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && addr.IsLoopback() {
			return true
		}
	}
	return false
}

// maxPorts bounds the ports that a jail listens on, beside 80 and 443.
const maxPorts = 200

// MergePorts returns the ports of both lists in ascending order, as far as a jail can serve them.
func MergePorts(a, b []uint16) []uint16 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxPorts)]
}

// PortIn is the port that a URL names, beside 80 and 443; 0 for none.
func PortIn(u *url.URL) uint16 {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n == 80 || n == 443 {
		return 0
	}
	return uint16(n)
}
