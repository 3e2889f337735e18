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

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s is a loopback, link-local, multicast or unspecified address, which is dialled only where an upstream names it", e.Addr)
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
	allowed map[netip.AddrPort]bool // literal addresses that an Upstreams entry names
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
	if forbidden(ap.Addr()) && !g.allowed[ap] {
		return &ForbiddenError{Addr: ap}
	}
	return nil
}

// checkHost refuses a literal forbidden address before anything is dialled: a proxy would go there for us.
func (g *guard) checkHost(host string, port uint16) error {
	a, err := netip.ParseAddr(host)
	if err != nil || !forbidden(a) {
		return nil
	}
	if ap := netip.AddrPortFrom(a.Unmap(), port); !g.allowed[ap] {
		return &ForbiddenError{Addr: ap}
	}
	return nil
}
