package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

const backlog = 4096 // connections that wait for the recorder

// Sockets are what the init makes inside and hands out.
type Sockets struct {
	listeners []int // of the ports
	others    []int // DNS over UDP, DNS over TCP, one that tells of Unix sockets, and the packet socket where there is one
	lo        uint32
	ipv6      bool

	NotCovered []string
}

// Up brings the network up and opens what every jail has in it.
func Up() (*Sockets, error) {
	s := new(Sockets)
	if err := s.up(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// dnsPort is where the recorder's DNS listens, on every address: nobody else inside can have it.
const dnsPort = 53

func (s *Sockets) up() error {
	if err := s.route(); err != nil {
		return err
	}
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
		if err := s.bound(&s.others, kind, dnsPort); err != nil {
			return err
		}
	}
	fd, err := connect.DiagSocket()
	if err != nil {
		return &step.Error{Op: connect.Step, Err: err}
	}
	s.others = append(s.others, fd)
	fd, err = s.packetSocket()
	if err != nil {
		s.NotCovered = append(s.NotCovered, "attempts on ports that nobody serves: no packet socket: "+err.Error())
		return nil
	}
	s.others = append(s.others, fd)
	return nil
}

// Listen opens a listener of each port.
func (s *Sockets) Listen(ports []uint16) error {
	for _, p := range ports {
		if err := s.bound(&s.listeners, unix.SOCK_STREAM, p); err != nil {
			return err
		}
	}
	return nil
}

// FDs are those of all, in the order in which the fields name them.
func (s *Sockets) FDs() []int { return slices.Concat(s.listeners, s.others) }

// Close closes them here.
func (s *Sockets) Close() { inspect.CloseAll(s.FDs()) }

// route makes every address local, of IPv6 where this kernel has it.
func (s *Sockets) route() error {
	var err error
	if s.lo, err = loopbackUp(); err != nil {
		return &step.Error{Op: "bring up the loopback device", Err: err}
	}
	local := func(kind byte, to string, source netip.Addr) route {
		return route{s.lo, unix.RT_TABLE_LOCAL, kind, unix.RT_SCOPE_HOST, netip.MustParsePrefix(to), source}
	}
	// Datagrams to many would otherwise leave with their destination as their source, which the kernel refuses unseen.
	us := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if err := addRoutes(
		local(unix.RTN_LOCAL, "0.0.0.0/0", netip.Addr{}),
		local(unix.RTN_MULTICAST, "224.0.0.0/4", us),
		local(unix.RTN_BROADCAST, "255.255.255.255/32", us)); err != nil {
		return &step.Error{Op: "route every IPv4 address to us", Err: err}
	}
	s.ipv6 = addRoutes(local(unix.RTN_LOCAL, "::/0", netip.Addr{})) == nil && haveIPv6()
	return nil
}

func haveIPv6() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// bound adds a socket of the port on every address to some: of both families where there are both.
func (s *Sockets) bound(to *[]int, kind int, port uint16) error {
	family, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(port)})
	if s.ipv6 {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(port)}
	}
	op := fmt.Sprintf("listen on port %d inside", port)
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return &step.Error{Op: op, Err: err}
	}
	*to = append(*to, fd)
	if s.ipv6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if kind == unix.SOCK_STREAM {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	} else {
		err = errors.Join(err, tellDestination(fd, s.ipv6))
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, backlog)
	}
	return step.Wrap(op, "", err)
}

// tellDestination makes a UDP socket say which address a query was sent to, and lets an answer come from there though no
// device has that address.
func tellDestination(fd int, ipv6 bool) error {
	err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	if ipv6 {
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1))
	}
	return err
}

// packetSocket sees what sniffProgram lets through. It hears nothing before its filter is there.
func (s *Sockets) packetSocket() (int, error) {
	raw, err := sniffProgram()
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	// What leaves comes in again on a loopback device, so it is not shown on its way out: the kernel would copy every packet of the program
	// for the filter to drop. Kernels before 4.20 cannot leave it out.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	prog := filter.Raw(raw)
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: int(s.lo)})
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }
