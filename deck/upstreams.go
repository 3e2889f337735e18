package deck

import (
	"net"
	"slices"
	"strconv"
)

// upstreamPorts lists the ports beside 80 and 443 that upstreams, keyed by NAME[:PORT], ask for, in ascending order.
func upstreamPorts(upstreams map[string]string) []uint16 {
	var out []uint16
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
