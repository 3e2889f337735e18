package network

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	tcpFIN, tcpSYN, tcpRST, tcpACK = 0x01, 0x02, 0x04, 0x10

	sniffLen = 192 // bytes of a packet: two IPv4 headers with all options, or two IPv6 ones, and what follows them
)

// sniffProgram lets through the packets on the loopback device that say what was refused: the reset that answers a SYN
// (its sequence number is 0), port unreachable, and datagrams to many, which nobody answers. Packets begin at their IP
// header; each is seen once, on its way in.
func sniffProgram() ([]bpf.RawInstruction, error) {
	v4 := append([]bpf.Instruction{bpf.LoadMemShift{Off: 0}}, sniffRules(&sniffFamily{ // X is the header's length
		proto: 9, icmp: unix.IPPROTO_ICMP, unreachable: 0x0303,
		dst: bpf.LoadAbsolute{Off: 16, Size: 4}, many: bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 0xe0000000},
		at: func(off uint32, size int) bpf.Instruction { return bpf.LoadIndirect{Off: off, Size: size} },
	})...)
	v6 := sniffRules(&sniffFamily{
		proto: 6, icmp: unix.IPPROTO_ICMPV6, unreachable: 0x0104,
		dst: bpf.LoadAbsolute{Off: 24, Size: 1}, many: bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xff},
		at: func(off uint32, size int) bpf.Instruction { return bpf.LoadAbsolute{Off: 40 + off, Size: size} },
	})
	p := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipFalse: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: uint8(len(v4)) + 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
	}
	return bpf.Assemble(append(append(p, v4...), v6...))
}

// A sniffFamily is what differs between IPv4 and IPv6.
type sniffFamily struct {
	proto       uint32 // offset of the protocol in the header
	icmp        uint32
	unreachable uint32 // type and code of port unreachable
	dst         bpf.LoadAbsolute
	many        bpf.JumpIf                                 // holds for a dst of multicast or broadcast
	at          func(off uint32, size int) bpf.Instruction // loads from behind the header
}

func sniffRules(f *sniffFamily) []bpf.Instruction {
	f.many.SkipTrue = 10
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: f.proto, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: f.icmp, SkipTrue: 10},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 2},
		f.dst,
		f.many,
		bpf.RetConstant{Val: 0},
		f.at(13, 1), // TCP flags
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: tcpFIN | tcpSYN | tcpRST | tcpACK},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: tcpRST | tcpACK, SkipTrue: 2},
		f.at(4, 4), // TCP sequence number
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 4},
		bpf.RetConstant{Val: 0},
		f.at(0, 2), // ICMP type and code
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: f.unreachable, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: sniffLen},
	}
}

// A Sniffer turns the packets of a packet socket into refusals.
type Sniffer struct {
	file   *os.File
	done   chan struct{}
	report func(connect.Refusal)
}

// sniff takes over fd, which does not block, and starts the goroutine that reads it; Close ends it.
func sniff(fd int, report func(connect.Refusal)) *Sniffer {
	s := &Sniffer{file: os.NewFile(uintptr(fd), "packet"), done: make(chan struct{}), report: report}
	go s.serve()
	return s
}

// Close reads what has arrived, then ends the goroutine. The kernel lets who closes a packet socket wait some milliseconds, until no processor
// can be within its filter any more. Nothing depends on that, and so nobody waits.
func (s *Sniffer) Close() {
	s.file.SetReadDeadline(time.Unix(1, 0))
	<-s.done
	if conn, err := s.file.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) {
			for s.receive(int(fd)) {
			}
		})
	}
	go s.file.Close()
}

func (s *Sniffer) serve() {
	defer close(s.done)
	conn, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	// The function never has enough: the deadline ends it.
	conn.Read(func(fd uintptr) bool {
		for s.receive(int(fd)) {
		}
		return false
	})
}

// receive reads one packet and says whether there was one.
func (s *Sniffer) receive(fd int) bool {
	var buf [sniffLen]byte
	n, _, err := unix.Recvfrom(fd, buf[:], 0)
	if err != nil {
		return errors.Is(err, unix.EINTR)
	}
	if r, ok := refusalOf(buf[:n]); ok {
		s.report(r)
	}
	return true
}

// refusalOf reads what a packet that passed sniffProgram says. ok is false for any other.
func refusalOf(p []byte) (r connect.Refusal, ok bool) {
	h, ok := parseIP(p)
	if !ok {
		return r, false
	}
	switch {
	case h.proto == unix.IPPROTO_TCP && len(h.rest) >= 4: // the port that answered is the one that was tried
		port := binary.BigEndian.Uint16(h.rest)
		return connect.Refusal{Proto: "tcp", Addr: h.src, Port: port, Reason: NoListener}, true
	case h.proto == unix.IPPROTO_UDP && len(h.rest) >= 4:
		return datagram(h, "udp: there is nobody else to hear it"), true
	case (h.proto == unix.IPPROTO_ICMP || h.proto == unix.IPPROTO_ICMPV6) && len(h.rest) >= 8:
		in, ok := parseIP(h.rest[8:]) // the packet that nobody wanted
		if !ok || in.proto != unix.IPPROTO_UDP || len(in.rest) < 4 {
			return r, false
		}
		if binary.BigEndian.Uint16(in.rest) == dnsPort { // our answer to a query whose sender has gone: a request that was cancelled
			return r, false
		}
		return datagram(in, "udp: nothing listens on this port inside"), true
	}
	return r, false
}

// datagram is the refusal of one.
func datagram(h ipHeader, reason string) connect.Refusal {
	from, to := binary.BigEndian.Uint16(h.rest), binary.BigEndian.Uint16(h.rest[2:])
	return connect.Refusal{Proto: "udp", Addr: h.dst, Port: to, From: from, Reason: reason}
}

type ipHeader struct {
	src, dst netip.Addr
	proto    int
	rest     []byte
}

func parseIP(p []byte) (h ipHeader, ok bool) {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		size := int(p[0]&0xf) * 4
		if size < 20 || size > len(p) {
			return h, false
		}
		src, dst := netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
		return ipHeader{src, dst, int(p[9]), p[size:]}, true
	case len(p) >= 40 && p[0]>>4 == 6:
		src, dst := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
		return ipHeader{src, dst, int(p[6]), p[40:]}, true
	}
	return h, false
}
