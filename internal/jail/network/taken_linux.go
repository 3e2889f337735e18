package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

// Taken is what the recorder has of the network inside.
type Taken struct {
	Listeners  []net.Listener // of the ports
	DNSPackets net.PacketConn
	DNSStream  net.Listener
	Diag       *connect.Diag // tells of Unix sockets
	packets    int           // the packet socket; -1 for none
}

// Take takes over what Sockets were handed out, of which the first are listeners of ports. What it returns, with an error too, is the
// caller's to close.
func Take(fds []int, listeners int) (*Taken, error) {
	t := &Taken{packets: -1}
	if n := len(fds) - listeners; n != 3 && n != 4 {
		inspect.CloseAll(fds)
		return t, fmt.Errorf("jail: %d sockets for %d ports", len(fds), listeners)
	}
	for i, fd := range fds {
		if err := t.take(i-listeners, fd); err != nil {
			inspect.CloseAll(fds[i+1:])
			return t, err
		}
	}
	return t, nil
}

// take takes over fd: which is negative for the listener of a port, then 0 for DNS over UDP, 1 for DNS over TCP,
// 2 for what tells of Unix sockets and 3 for the packet socket.
func (t *Taken) take(which, fd int) error {
	switch which {
	case 0:
		pc, err := newPacketConn(fd)
		if err != nil {
			return err
		}
		t.DNSPackets = pc
		return nil
	case 2:
		t.Diag = connect.DiagOf(fd)
		return nil
	case 3:
		t.packets = fd
		return nil
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	if which == 1 {
		t.DNSStream = l
	} else {
		t.Listeners = append(t.Listeners, l)
	}
	return nil
}

// Sniff reports what the packet socket sees; nil where there is none.
func (t *Taken) Sniff(report func(connect.Refusal)) *Sniffer {
	if t.packets < 0 {
		return nil
	}
	return sniff(t.packets, report)
}

// Close closes the listeners and the DNS sockets.
func (t *Taken) Close() {
	for _, l := range t.Listeners {
		l.Close()
	}
	if t.DNSPackets != nil {
		t.DNSPackets.Close()
	}
	if t.DNSStream != nil {
		t.DNSStream.Close()
	}
}

// A dnsAddr is the sender of a datagram, and where it was sent to: the answer comes from there.
type dnsAddr struct {
	netip.AddrPort
	local netip.Addr
}

// Network implements net.Addr.
func (dnsAddr) Network() string { return "udp" }

// A packetConn is the UDP socket inside, of both families where there are both.
type packetConn struct {
	*net.UDPConn
}

func newPacketConn(fd int) (*packetConn, error) {
	f := os.NewFile(uintptr(fd), "dns")
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("jail: the DNS socket is a %T", c)
	}
	return &packetConn{u}, nil
}

// ReadFrom implements net.PacketConn. The address remembers where the datagram was sent to.
func (c *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	var oob [128]byte
	n, oobn, _, from, err := c.ReadMsgUDPAddrPort(b, oob[:])
	if err != nil {
		return n, nil, err
	}
	return n, dnsAddr{from, destinationOf(oob[:oobn])}, nil
}

// WriteTo implements net.PacketConn.
func (c *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(dnsAddr)
	if !ok {
		return c.UDPConn.WriteTo(b, to)
	}
	n, _, err := c.WriteMsgUDPAddrPort(b, sourceControl(a.local), a.AddrPort)
	return n, err
}

// destinationOf reads IP_PKTINFO or IPV6_PKTINFO; the zero address when there is neither.
func destinationOf(oob []byte) netip.Addr {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.Addr{}
	}
	for _, m := range msgs {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4([4]byte(m.Data[8:12])) // ipi_addr
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16([16]byte(m.Data[:16])).Unmap()
		}
	}
	return netip.Addr{}
}

// sourceControl makes a datagram leave from local.
func sourceControl(local netip.Addr) []byte {
	switch {
	case local.Is4():
		return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: local.As4()})
	case local.Is6():
		return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: local.As16()})
	}
	return nil
}
