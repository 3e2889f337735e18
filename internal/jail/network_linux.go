package jail

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// takeSockets takes over what the init handed out, in the order of sockets; the first ones are listeners of ports.
func (j *Jail) takeSockets(fds []int, listeners int) error {
	if n := len(fds) - listeners; n != 3 && n != 4 {
		closeFDs(fds)
		return fmt.Errorf("jail: %d sockets for %d ports", len(fds), listeners)
	}
	for i, fd := range fds {
		if err := j.takeSocket(i-listeners, fd); err != nil {
			closeFDs(fds[i+1:])
			return err
		}
	}
	return nil
}

// takeSocket takes over fd: which is negative for the listener of a port, then 0 for DNS over UDP, 1 for DNS over TCP,
// 2 for what tells of Unix sockets and 3 for the packet socket.
func (j *Jail) takeSocket(which, fd int) error {
	switch which {
	case 0:
		pc, err := newPacketConn(fd)
		if err != nil {
			return err
		}
		j.dnsPackets = pc
		return nil
	case 2:
		var err error
		if j.connector, err = newConnector(&diag{fd: fd}, j.diagIn); err == nil {
			j.connector.report = j.refusals.add
		}
		return err
	case 3:
		j.refusals.sniff = newSniffer(fd, j.refusals.add)
		return nil
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	if which == 1 {
		j.dnsStream = l
	} else {
		j.listeners = append(j.listeners, l)
	}
	return nil
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
