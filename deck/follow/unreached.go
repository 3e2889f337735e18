package follow

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An Unreached is a port of this host that a program asked for and that nothing was behind, since no upstream names it: that of
// a server of local models, say. It may as well be a port on which the program's own server did not listen yet.
type Unreached struct {
	Name   string // NAME:PORT, as the program has it
	Target string // the URL of a server there
}

// Upstream is the value of record's --upstream that leads there, for a shell.
func (u *Unreached) Upstream() string {
	s := u.Name + "=" + u.Target
	if strings.ContainsAny(s, "[]") { // patterns, to some shells
		return "'" + s + "'"
	}
	return s
}

// UnreachedBy says which port of this host a record says was asked for in vain; nil for any other record.
func UnreachedBy(k tape.Kind) *Unreached {
	if r, ok := k.(*tape.NetRefused); ok {
		return unreachedPort(r)
	}
	if x := tape.ExchangeOf(k); x != nil && x.Status == 0 {
		return unreachedURL(x)
	}
	return nil
}

// unreachedPort is that of a connection that met nobody in the jail.
func unreachedPort(r *tape.NetRefused) *Unreached {
	addr, err := netip.ParseAddr(r.Addr)
	if err != nil || !addr.IsLoopback() || r.Reason != jail.NoListener {
		return nil
	}
	name := net.JoinHostPort(r.Addr, strconv.Itoa(r.Port))
	return &Unreached{Name: name, Target: "http://" + name}
}

// unreachedURL is that of a request that was not sent on, for it would have stayed on this host.
func unreachedURL(x *tape.Exchange) *Unreached {
	text, ok := strings.CutSuffix(x.Error, network.OnlyNamed)
	if !ok {
		return nil
	}
	text, _, _ = strings.Cut(text, " ")
	addr, err := netip.ParseAddrPort(text)
	u, errURL := url.Parse(x.URL)
	if err != nil || errURL != nil || addr.Addr().IsLinkLocalUnicast() || addr.Addr().IsMulticast() {
		return nil
	}
	target := addr.String()
	if addr.Addr().IsUnspecified() { // not to be dialled everywhere
		target = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(addr.Port())))
	}
	return &Unreached{Name: net.JoinHostPort(u.Hostname(), strconv.Itoa(int(addr.Port()))), Target: fmt.Sprintf("%s://%s", u.Scheme, target)}
}

// AddUnreached notes u once. A name has several addresses, which are tried in turn: of IPv6 and IPv4 the latter is kept, where
// servers listen.
func AddUnreached(list []Unreached, u *Unreached) []Unreached {
	host, port, _ := net.SplitHostPort(u.Name)
	for i := range list {
		if h, p, _ := net.SplitHostPort(list[i].Name); p == port && (h == "::1" || host == "::1") {
			if h == "::1" {
				list[i] = *u
			}
			return list
		}
	}
	if slices.Contains(list, *u) {
		return list
	}
	return append(list, *u)
}
