package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dialTimeout bounds the connect of one address.
const dialTimeout = 30 * time.Second

// A ForbiddenError says that the recorder was asked to reach an address of its own host's inside.
type ForbiddenError struct {
	Addr netip.AddrPort
}

// OnlyNamed ends the text of a ForbiddenError, and with it that of an exchange on a tape.
const OnlyNamed = "which is dialled only where an upstream names it"

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s is a loopback, link-local, multicast or unspecified address or one of this host, %s", e.Addr, OnlyNamed)
}

// forbidden holds for what reaches the recorder's own host, or everybody on its link.
func forbidden(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsValid() || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() ||
		a.Is4() && a.As4()[0] == 0
}

// A guard decides on addresses after resolution: on what is really dialled, so that a name that changes its address
// between a check and a dial gains nothing.
type guard struct {
	allowed map[netip.AddrPort]bool // literal addresses that an Upstreams entry names, or a proxy variable
	own     map[netip.Addr]bool     // of the host's own interfaces: as much its inside as the loopback is
}

// ownAddrs are the addresses of the host's interfaces. Where they cannot be listed there are none.
func ownAddrs() map[netip.Addr]bool {
	out := make(map[netip.Addr]bool)
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return out
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out[p.Addr().Unmap()] = true
		}
	}
	return out
}

func (g *guard) forbids(ap netip.AddrPort) bool {
	return (forbidden(ap.Addr()) || g.own[ap.Addr().Unmap()]) && !g.allowed[ap]
}

// dialer returns a dialer that reaches no forbidden address.
func (g *guard) dialer(resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Resolver: resolver, ControlContext: g.check}
}

// check implements net.Dialer's ControlContext. The error is a *ForbiddenError.
func (g *guard) check(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %q: %w", address, err)
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	if g.forbids(ap) {
		return &ForbiddenError{Addr: ap}
	}
	return nil
}

// checkHost refuses a literal forbidden address before anything is dialled: a proxy would go there for us.
func (g *guard) checkHost(host string, port uint16) error {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // a name: check sees what it resolves to
	}
	if ap := netip.AddrPortFrom(a.Unmap(), port); g.forbids(ap) {
		return &ForbiddenError{Addr: ap}
	}
	return nil
}
