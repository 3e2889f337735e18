package fidelity

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A networkLane is the names that were looked up and the connections that were refused.
type networkLane struct {
	*laneCompare
	alive map[string]bool // hosts that answered while recording
}

// compare compares both sides. Order and repeats do not count, but for sockets that send datagrams. What one
// side alone tried gates where both were given the same time and randomness; else a name that was looked up is a note, and so are
// a Unix socket and a connection that the replay no longer tries. So is, always, a TLS connection that was closed before a request, to a host that
// answered others: a pool opens them to spare, and has no use for them when answers come at once. A client that trusts nobody any
// more leaves requests that were never asked for.
func (c *networkLane) compare(p lanePair) {
	was, now := c.attempts(p.a), c.attempts(p.b)
	for _, e := range onlyIn(now, was) {
		switch host := tlsHost(e.rec.Kind); {
		case c.alive[host]:
			c.note("closed on replay before a request: a TLS connection to %s, which answered others", host)
		case !c.o.Exact && !isConnection(e.rec.Kind):
			c.note("tried on replay alone: %s", describe(e.rec.Kind))
		default:
			c.alone(Replay, laneNetwork, e, e.at)
		}
	}
	for _, e := range onlyIn(was, now) {
		if _, spare := e.rec.Kind.(*tape.TLSRefused); c.o.Exact && !spare { // given the same, it looks up and asks for the same again
			c.alone(Recorded, laneNetwork, e, c.end())
		} else {
			c.note("tried while recording and not on replay: %s", describe(e.rec.Kind))
		}
	}
}

// isConnection reports whether a program tried to reach another machine, or a port of this one.
func isConnection(k tape.Kind) bool {
	r, ok := k.(*tape.NetRefused)
	_, lookup := k.(*tape.NameLookup)
	return !lookup && (!ok || !isSocket(r))
}

// tlsHost is the host of a refused TLS connection as it stands in URLs; "" for any other kind.
func tlsHost(k tape.Kind) string {
	t, ok := k.(*tape.TLSRefused)
	switch {
	case !ok:
		return ""
	case t.Port == 443:
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// onlyIn are the attempts of one side that the other did not make, in order.
func onlyIn(side, other map[string]*entry) (out []*entry) {
	for key, e := range side {
		if other[key] == nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.at, b.at) })
	return out
}

// attempts returns the first entry of every attempt, and of datagrams that of every socket.
func (c *networkLane) attempts(es []entry) map[string]*entry {
	out, sockets := make(map[string]*entry), make(map[string]int)
	for i := range es {
		key := c.attempt(es[i].rec.Kind)
		if r, ok := es[i].rec.Kind.(*tape.NetRefused); ok && c.o.Exact && strings.HasPrefix(r.Reason, "udp") {
			sockets[key]++
			key = fmt.Sprint(key, " socket ", sockets[key])
		}
		if out[key] == nil {
			out[key] = &es[i]
		}
	}
	return out
}

// attempt says which name was looked up or where a refused connection went, ports of the loopback masked.
func (c *networkLane) attempt(k tape.Kind) string {
	masked := c.o.masked
	if c.o.Exact { // nothing of it differs by itself
		masked = func(s string) string { return s }
	}
	switch k := k.(type) {
	case *tape.TLSRefused:
		return "tls " + masked(net.JoinHostPort(k.Host, strconv.Itoa(k.Port)))
	case *tape.NameLookup:
		return "name " + masked(k.Host) + " " + k.Type + " " + k.Result
	case *tape.NetRefused:
		return "net " + masked(net.JoinHostPort(k.Addr, strconv.Itoa(k.Port)))
	}
	return fmt.Sprintf("%T", k)
}
