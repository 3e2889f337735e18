package network

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	maxDNSMessage  = 1 << 16          // bytes: what the length before a message over TCP can say
	dnsIdleTimeout = 30 * time.Second // of a TCP connection between two queries
	maxUDPErrors   = 64               // in a row, after which a UDP socket counts as broken
)

// A DNS answers the DNS queries of a program from Names. It resolves nothing: no query ever leaves.
type DNS struct {
	names *Names
	asked func(l *tape.NameLookup, from net.Addr)
	life  lifetime // of the Serve calls and the connections
}

// NewDNS returns an answerer that gives out the addresses of names. asked, which may be nil, is told of each name that is looked up,
// before the answer.
func NewDNS(names *Names, asked func(l *tape.NameLookup, from net.Addr)) *DNS {
	return &DNS{names: names, asked: asked}
}

// answer is the reply to one message.
func (d *DNS) answer(query []byte, from net.Addr) []byte {
	reply, looked := answerDNS(d.names, query)
	if looked != nil && d.asked != nil {
		d.asked(looked, from)
	}
	return reply
}

// ServeUDP answers queries on pc until Close, and returns nil then. Where the socket can tell which address a query was
// sent to, the reply leaves from that address: clients drop replies from any other.
func (d *DNS) ServeUDP(pc net.PacketConn) error {
	if !d.life.enter(pc) {
		return pc.Close()
	}
	defer d.life.leave(pc)
	p := ipv4.NewPacketConn(pc)
	_, isUDP := pc.(*net.UDPConn)
	withDst := isUDP && p.SetControlMessage(ipv4.FlagDst, true) == nil
	buf := make([]byte, maxDNSMessage)
	for failed := 0; ; {
		err := d.answerPacket(pc, p, withDst, buf)
		switch {
		case d.life.over():
			return nil
		case err == nil:
			failed = 0
		case errors.Is(err, net.ErrClosed) || failed == maxUDPErrors:
			return err
		default:
			failed++
		}
	}
}

// answerPacket answers one datagram. Errors of single datagrams (an unreachable sender) end nothing.
func (d *DNS) answerPacket(pc net.PacketConn, p *ipv4.PacketConn, withDst bool, buf []byte) error {
	if !withDst {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return err
		}
		if reply := d.answer(buf[:n], from); reply != nil {
			_, err = pc.WriteTo(reply, from)
		}
		return err
	}
	n, cm, from, err := p.ReadFrom(buf)
	if err != nil {
		return err
	}
	reply := d.answer(buf[:n], from)
	if reply == nil {
		return nil
	}
	var source *ipv4.ControlMessage
	if cm != nil && cm.Dst != nil {
		source = &ipv4.ControlMessage{Src: cm.Dst}
	}
	_, err = p.WriteTo(reply, source, from)
	return err
}

// ServeTCP answers queries on the connections of l until Close, and returns nil then.
func (d *DNS) ServeTCP(l net.Listener) error { return d.life.accept(l, d.serveConn) }

// serveConn answers the queries of one connection, each with its length in two bytes before it (RFC 1035, 4.2.2).
func (d *DNS) serveConn(c net.Conn) {
	defer d.life.leave(c)
	defer c.Close()
	var size [2]byte
	for {
		c.SetDeadline(time.Now().Add(dnsIdleTimeout))
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := d.answer(query, c.RemoteAddr())
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// Close closes the sockets that are served and waits until no query is being answered.
func (d *DNS) Close() error {
	d.life.end()
	return nil
}
