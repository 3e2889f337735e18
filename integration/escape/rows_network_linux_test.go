//go:build escape

package escape

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialLimit is short: what is refused is refused at once.
const dialLimit = 2 * time.Second

var networkRows = []row{
	{
		name: "raw sockets", tried: "socket() for IPv4 and IPv6, type raw, protocols ICMP, TCP and raw",
		how: "the filter: EPERM, and a record of the refusal", try: trySockets([]int{unix.AF_INET, unix.AF_INET6},
			[]int{unix.SOCK_RAW}, []int{unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_RAW, unix.IPPROTO_ICMPV6}, unix.EPERM),
	},
	{
		name: "raw sockets in a network of its own", tried: "the same with every capability in a new user and network namespace",
		how: "the filter, which is inherited", spaces: unix.CLONE_NEWNET, try: trySockets([]int{unix.AF_INET, unix.AF_INET6},
			[]int{unix.SOCK_RAW}, []int{unix.IPPROTO_ICMP, unix.IPPROTO_RAW}, unix.EPERM),
	},
	{
		name: "packet sockets", tried: "socket(AF_PACKET), raw and dgram", how: "the filter: EPERM",
		try: trySockets([]int{unix.AF_PACKET}, []int{unix.SOCK_RAW, unix.SOCK_DGRAM}, []int{0, unix.ETH_P_ALL}, unix.EPERM),
	},
	{
		name: "ICMP", tried: "ping sockets (dgram, protocol ICMP), IPv4 and IPv6", how: "the filter: EPERM",
		try: trySockets([]int{unix.AF_INET, unix.AF_INET6}, []int{unix.SOCK_DGRAM}, []int{unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6}, unix.EPERM),
	},
	{
		name: "other Internet protocols", tried: "SCTP, DCCP, UDP-Lite and L2TP sockets", how: "the filter: EPERM", try: func(*inside) outcome {
			return all(socketRefused(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, unix.EPERM),
				socketRefused(unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP, unix.EPERM),
				socketRefused(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP, unix.EPERM),
				socketRefused(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, unix.EPERM),
				socketRefused(unix.AF_INET, unix.SOCK_DGRAM, 115, unix.EPERM))
		},
	},
	{
		name: "every other socket family", tried: "socket() of families 0 to 63 but Unix, Internet, netlink, packet: vsock, Bluetooth, ALG, XDP, TIPC, …",
		how: "the filter: EAFNOSUPPORT", try: tryFamilies,
	},
	{
		name: "vsock to the hypervisor", tried: "a vsock connection to CIDs 1, 2 and 3", how: "the filter: EAFNOSUPPORT",
		try: trySockets([]int{unix.AF_VSOCK}, []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET}, []int{0}, unix.EAFNOSUPPORT),
	},
	{
		name: "loopback of the host, IPv4", tried: "TCP to a listener of the host on 127.0.0.1, by address and by `localhost`",
		how: "a network namespace of its own: nobody listens there", untouched: unreached("tcp4"), try: func(in *inside) outcome {
			return all(dialRefused("tcp", in.TCP["tcp4"]), dialRefused("tcp", net.JoinHostPort("localhost", portOf(in.TCP["tcp4"]))),
				dialRefused("tcp", net.JoinHostPort("::ffff:127.0.0.1", portOf(in.TCP["tcp4"]))))
		},
	},
	{
		name: "loopback of the host, IPv6", tried: "TCP to a listener of the host on ::1", how: "the same", untouched: unreached("tcp6"),
		try: func(in *inside) outcome {
			if in.TCP["tcp6"] == "" {
				return notTried("no IPv6 here")
			}
			return dialRefused("tcp", in.TCP["tcp6"])
		},
	},
	{
		name: "addresses and names of the host", tried: "TCP to a listener on every address of the host, by its address, its host name and 0.0.0.0",
		how: "the same: every address is the jail's own", untouched: unreached("any"), try: tryHostAddresses,
	},
	{
		name: "loopback of the host through the recorder", tried: "HTTP to port 80 with Host, absolute URI and CONNECT that name 127.0.0.1, localhost, ::1, 0.0.0.0, " +
			"2130706433, 0x7f.1, the host's name and address, 169.254.169.254, each with the listener's port",
		how:       "the recorder does not dial what resolves to itself, its host or link-local; Host must name what was dialled (421)",
		untouched: unreached("tcp4", "tcp6", "any"), try: tryThroughRecorder,
	},
	{
		name: "UDP to the host", tried: "datagrams to a socket of the host on 127.0.0.1 and on every address", how: "a network namespace of its own",
		untouched: unreached("udp4", "udp"), try: func(in *inside) outcome {
			return all(sendTo(in.UDP["udp4"]), sendTo(net.JoinHostPort("127.0.0.1", portOf(in.UDP["udp"]))),
				sendTo(net.JoinHostPort(orLoopback(in.Address), portOf(in.UDP["udp"]))))
		},
	},
	{
		name: "QUIC", tried: "a QUIC initial to port 443 of an address and of a name", how: "nobody answers UDP inside: clients fall back to TCP; recorded",
		try: func(*inside) outcome {
			return all(quic("9.9.9.9:443"), quic("[2620:fe::9]:443"), quic("example.com:443"))
		},
	},
	{
		name: "multicast and broadcast", tried: "datagrams to 224.0.0.1, 239.255.255.250, 255.255.255.255 and ff02::1 at a port of the host",
		how: "a network namespace of its own; recorded", untouched: unreached("udp4", "udp"), try: func(in *inside) outcome {
			port := portOf(in.UDP["udp"])
			return all(sendTo("224.0.0.1:"+port), sendTo("239.255.255.250:"+port), sendTo("255.255.255.255:"+port), sendTo("[ff02::1%lo]:"+port))
		},
	},
	{
		name: "DNS tunnel", tried: "queries for names under .invalid to 127.0.0.1, 8.8.8.8 and 169.254.169.254, UDP and TCP",
		how: "the recorder answers every query itself and asks nobody", untouched: unreached("udp"), try: tryDNS,
	},
	{
		name: "literal addresses, other ports", tried: "TCP to 9.9.9.9 ports 22, 25, 853, 8443 and to 169.254.169.254 port 8080",
		how: "nothing listens there inside; recorded", try: func(*inside) outcome {
			return all(dialRefused("tcp", "9.9.9.9:22"), dialRefused("tcp", "9.9.9.9:25"), dialRefused("tcp", "9.9.9.9:853"),
				dialRefused("tcp", "9.9.9.9:8443"), dialRefused("tcp", "169.254.169.254:8080"), dialRefused("tcp", "[2620:fe::fe]:22"))
		},
	},
	{
		name: "TLS that pins another CA", tried: "TLS to port 443 of a name whose only trusted CA is not the recorder's",
		how: "the recorder ends TLS itself: the client sees its certificate, refuses, and that is recorded", untouched: unreached("tls"), try: tryPinned,
	},
	{
		name: "proxy of the host", tried: "the proxy that HTTP_PROXY of the recorder names, on the host's loopback",
		how: "the program's environment has no proxy, and its loopback no listener", try: tryProxy,
	},
	{
		name: "bound devices", tried: "SO_BINDTODEVICE to eth0, wlan0 and docker0, SO_MARK, IP_TRANSPARENT, a socket filter of eBPF",
		how: "there is no other device than lo; no capability", try: tryBind,
	},
	{
		name: "routes and devices", tried: "netlink: a new route, a new device, lo down", how: "no capability: EPERM", try: tryRoutes,
	},
	{
		name: "a cable to the network of process 1", tried: "in a network namespace of its own: a veth pair with one end at process 1",
		how: "no capability over that namespace: EPERM", spaces: unix.CLONE_NEWNET, try: tryVeth,
	},
	{
		name: "netlink of the kernel", tried: "audit, uevents of devices, process connector, SCSI, iSCSI, SELinux: socket, then a message",
		how: "other network namespaces than the host's have none of these, or EPERM", try: tryNetlink,
	},
	{
		name: "a flood of connections", tried: "1,000 connections at once to ports that nobody serves and to 443",
		how: "each is refused or served; the recorder lives and the recording is sound", try: tryFlood,
	},
}

func unreached(what ...string) func(o *outside) error {
	return func(o *outside) error { return o.unreached(what...) }
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func orLoopback(addr string) string {
	if addr == "" {
		return "127.0.0.1"
	}
	return addr
}

func socketRefused(family, kind, protocol int, want ...syscall.Errno) outcome {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return refused(fmt.Sprintf("socket(%d, %d, %d)", family, kind, protocol), err, want...)
}

func trySockets(families, kinds, protocols []int, want ...syscall.Errno) func(*inside) outcome {
	return func(*inside) outcome {
		var list []outcome
		for _, f := range families {
			for _, k := range kinds {
				for _, p := range protocols {
					list = append(list, socketRefused(f, k, p, want...))
				}
			}
		}
		return all(list...)
	}
}

func tryFamilies(*inside) outcome {
	var list []outcome
	for f := range 64 {
		switch f {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET:
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			list = append(list, socketRefused(f, kind, 0, unix.EAFNOSUPPORT))
		}
		// A pair is of Unix sockets, or of a family that only talks to itself: TIPC.
		if fds, err := unix.Socketpair(f, unix.SOCK_STREAM, 0); err == nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
			list = append(list, out("socketpair of family %d", f))
		}
	}
	return all(list...)
}

// dialRefused is held where nobody accepts.
func dialRefused(network, addr string) outcome {
	c, err := net.DialTimeout(network, addr, dialLimit)
	if err == nil {
		c.SetReadDeadline(time.Now().Add(dialLimit))
		line, _ := bufio.NewReader(c).ReadString('\n')
		c.Close()
		return out("%s %s answered %q", network, addr, line)
	}
	return connectFailed(network+" "+addr, err)
}

func connectFailed(what string, err error) outcome {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return held("no answer")
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return held("no such name")
	}
	return refused(what, err, unix.ECONNREFUSED, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EADDRNOTAVAIL)
}

func tryHostAddresses(in *inside) outcome {
	port := portOf(in.TCP["any"])
	name, _ := os.Hostname()
	list := []outcome{dialRefused("tcp", "0.0.0.0:"+port), dialRefused("tcp", net.JoinHostPort(name, port))}
	if in.Address != "" {
		list = append(list, dialRefused("tcp", net.JoinHostPort(in.Address, port)))
	}
	return all(list...)
}

// tryThroughRecorder asks the listener of port 80 for the host's insides. What the host says has its token in it.
func tryThroughRecorder(in *inside) outcome {
	name, _ := os.Hostname()
	asked := make(chan outcome)
	count := 0
	for _, port := range []string{portOf(in.TCP["tcp4"]), portOf(in.TCP["any"]), "80"} {
		for _, host := range []string{
			"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", name,
			orLoopback(in.Address), "169.254.169.254",
		} {
			at := host + ":" + port
			for _, request := range []string{
				"GET / HTTP/1.1\r\nHost: " + at + "\r\nConnection: close\r\n\r\n",
				"GET http://" + at + "/ HTTP/1.1\r\nHost: " + at + "\r\nConnection: close\r\n\r\n",
				"CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n",
			} {
				count++
				go func() { asked <- askPort80(in, at, request) }()
			}
		}
	}
	var list []outcome
	for range count {
		list = append(list, <-asked)
	}
	return all(list...)
}

func askPort80(in *inside, at, request string) outcome {
	c, err := net.DialTimeout("tcp", "127.0.0.1:80", dialLimit)
	if err != nil {
		return out("the recorder's own port 80: %v", err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(dialLimit))
	io.WriteString(c, request)
	answer, _ := io.ReadAll(io.LimitReader(c, 64<<10))
	status, _, _ := strings.Cut(string(answer), "\r\n")
	switch {
	case strings.Contains(string(answer), in.Token):
		return out("%s answered through the recorder", at)
	case strings.HasPrefix(status, "HTTP/1.1 2"):
		return out("%s: %s", at, status)
	case status == "":
		return held("no answer")
	}
	return held("%.12s", status)
}

func sendTo(addr string) outcome {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return connectFailed("udp "+addr, err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := c.Write([]byte("escape")); err != nil {
		return refused("udp "+addr, err, unix.ECONNREFUSED, unix.ENETUNREACH, unix.EACCES, unix.EADDRNOTAVAIL, unix.EHOSTUNREACH)
	}
	n, err := c.Read(make([]byte, 100))
	if err == nil {
		return out("udp %s answered %d bytes", addr, n)
	}
	return held("nobody answers")
}

// quic sends what begins a QUIC connection: a long header, version 1.
func quic(addr string) outcome {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return connectFailed("udp "+addr, err)
	}
	defer c.Close()
	packet := make([]byte, 1200)
	copy(packet, []byte{0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	c.Write(packet)
	if n, err := c.Read(make([]byte, 2000)); err == nil {
		return out("%s answered %d bytes", addr, n)
	}
	return held("nobody answers")
}

func tryDNS(in *inside) outcome {
	var list []outcome
	for _, server := range []string{"127.0.0.1:53", "8.8.8.8:53", "169.254.169.254:53"} {
		for _, network := range []string{"udp", "tcp"} {
			r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, network, server)
			}}
			ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
			addrs, err := r.LookupHost(ctx, "data-for-you."+in.Token+".invalid")
			cancel()
			// A name that does not exist has an address: the answer is the recorder's, who gives each name one.
			if err != nil {
				list = append(list, held("no address"))
			} else if len(addrs) > 0 {
				list = append(list, held("the recorder answers"))
			}
		}
	}
	return all(list...)
}

func tryPinned(in *inside) outcome {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(in.CA)
	client := &http.Client{Timeout: dialLimit, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err := client.Get("https://" + tlsName + "/")
	if err == nil {
		resp.Body.Close()
		return out("answered %s under the other CA", resp.Status)
	}
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		return out("not refused by the client: %v", err)
	}
	return all(held("the client refuses"), dialRefused("tcp", in.TCP["tls"]))
}

func tryProxy(in *inside) outcome {
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); strings.HasSuffix(strings.ToUpper(name), "_PROXY") && value != "" {
			return out("the program has %s", kv)
		}
	}
	return dialRefused("tcp", in.TCP["proxy"])
}

func tryBind(*inside) outcome {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return out("no UDP socket: %v", err)
	}
	defer unix.Close(fd)
	var list []outcome
	for _, dev := range []string{"eth0", "wlan0", "docker0"} {
		list = append(list, refused("SO_BINDTODEVICE "+dev, unix.BindToDevice(fd, dev), unix.ENODEV, unix.EPERM))
	}
	return all(append(list,
		refused("SO_MARK", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1), unix.EPERM),
		refused("IP_TRANSPARENT", unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1), unix.EPERM),
		refused("SO_ATTACH_BPF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, -1), unix.EPERM, unix.EBADF))...)
}

func tryFlood(*inside) outcome {
	const count = 1000
	errs := make(chan error, count)
	for i := range count {
		go func() {
			addr := fmt.Sprintf("10.%d.%d.1:%d", i/250, i%250, 4000+i)
			if i%4 == 0 {
				addr = fmt.Sprintf("10.%d.%d.1:443", i/250, i%250)
			}
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			if err == nil {
				c.Close()
			}
			errs <- err
		}()
	}
	refusedCount := 0
	for range count {
		if <-errs != nil {
			refusedCount++
		}
	}
	if refusedCount < count*3/4 {
		return out("only %d of %d were refused", refusedCount, count)
	}
	return held("refused or served")
}
