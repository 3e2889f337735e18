package network

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	dnsHeader = 12 // bytes of a DNS message's header
	dnsTTL    = 60 // seconds; an address never changes, this only bounds what a cache keeps after the run
)

// answerDNS returns the reply to one DNS message, nil where there is none to give (too short to have an id, or itself a
// reply). A questions get a synthetic address, PTR questions the name of one, every other type an answer without
// records: programs then fall back to IPv4, and to HTTP without service records. Malformed messages get FORMERR.
//
// looked is the question, and what came of it; nil of a malformed message.
func answerDNS(names *Names, query []byte) (reply []byte, looked *tape.NameLookup) {
	if len(query) < dnsHeader || query[2]&0x80 != 0 {
		return nil, nil
	}
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return formErr(query), nil
	}
	q, err := p.Question()
	if err != nil {
		return formErr(query), nil
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return formErr(query), nil
	}
	body, code := resolve(h, q, names)
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: h.ID, Response: true, OpCode: h.OpCode, RCode: code,
			RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	looked = &tape.NameLookup{Host: cleanName(q.Name.String()), Type: strings.TrimPrefix(q.Type.String(), "Type"), Result: "answered"}
	switch {
	case code != dnsmessage.RCodeSuccess:
		looked.Result = "refused"
	case body == nil:
		looked.Result = "empty"
	default:
		rh := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: dnsTTL}
		m.Answers = []dnsmessage.Resource{{Header: rh, Body: body}}
	}
	if reply, err = m.Pack(); err != nil {
		return formErr(query), nil
	}
	return reply, looked
}

// formErr is the header alone, with the query's id.
func formErr(query []byte) []byte {
	out := make([]byte, dnsHeader)
	copy(out, query[:2])
	binary.BigEndian.PutUint16(out[2:], 0x8000|uint16(query[2]&0x79)<<8|uint16(dnsmessage.RCodeFormatError))
	return out
}

// resolve answers one question; a nil body is an answer without records.
func resolve(h dnsmessage.Header, q dnsmessage.Question, names *Names) (dnsmessage.ResourceBody, dnsmessage.RCode) {
	switch {
	case h.OpCode != 0:
		return nil, dnsmessage.RCodeNotImplemented
	case q.Class != dnsmessage.ClassINET && q.Class != dnsmessage.ClassANY:
		return nil, dnsmessage.RCodeSuccess
	case q.Type == dnsmessage.TypePTR:
		return resolvePTR(q, names)
	}
	name := cleanName(q.Name.String())
	if !validName(name) {
		return nil, dnsmessage.RCodeNameError
	}
	if q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL {
		return nil, dnsmessage.RCodeSuccess
	}
	addr, err := names.Addr(name)
	if err != nil {
		return nil, dnsmessage.RCodeServerFailure
	}
	return &dnsmessage.AResource{A: addr.As4()}, dnsmessage.RCodeSuccess
}

func resolvePTR(q dnsmessage.Question, names *Names) (dnsmessage.ResourceBody, dnsmessage.RCode) {
	digits, ok := strings.CutSuffix(cleanName(q.Name.String()), ".in-addr.arpa")
	parts := strings.Split(digits, ".")
	slices.Reverse(parts)
	addr, err := netip.ParseAddr(strings.Join(parts, "."))
	if !ok || err != nil || !addr.Is4() {
		return nil, dnsmessage.RCodeNameError
	}
	name, ok := names.Name(addr)
	if addr.IsLoopback() {
		name, ok = "localhost", true
	}
	if !ok {
		return nil, dnsmessage.RCodeNameError
	}
	ptr, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, dnsmessage.RCodeServerFailure
	}
	return &dnsmessage.PTRResource{PTR: ptr}, dnsmessage.RCodeSuccess
}

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

// ServeUDP answers queries on pc until Close, and returns nil then. What is written to who asked has to leave from the address that the
// query was sent to: clients drop replies from any other. Errors of single datagrams (an unreachable sender) end nothing.
func (d *DNS) ServeUDP(pc net.PacketConn) error {
	if !d.life.enter(pc) {
		return pc.Close()
	}
	defer d.life.leave(pc)
	buf := make([]byte, maxDNSMessage)
	for failed := 0; ; {
		n, from, err := pc.ReadFrom(buf)
		if err == nil {
			if reply := d.answer(buf[:n], from); reply != nil {
				_, err = pc.WriteTo(reply, from)
			}
		}
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

// synthetic is the range that Names gives addresses from: RFC 2544's, which no host on the Internet has. The first 256
// addresses are never given out; a jail may use them for itself.
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

const (
	syntheticFirst = 256
	syntheticCount = 1<<17 - syntheticFirst - 1 // without the broadcast address
	maxNames       = syntheticCount / 2         // a table that is half full still probes quickly
)

// errNamesFull is returned by Names.Addr once maxNames names have an address.
var errNamesFull = errors.New("too many names")

// Names gives each name a synthetic address, and finds the name of an address again. An address follows from the hash of
// its name, so that a name has the same one while recording and on replay; only names whose hashes collide depend on the
// order of asking. The zero Names is ready to use.
type Names struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
}

// Addr returns the address of name, which is taken in lower case and without a final dot. "localhost" and names below
// it have 127.0.0.1. The error is that of a table that is full.
func (n *Names) Addr(name string) (netip.Addr, error) {
	name = cleanName(name)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.byName[name]; ok {
		return a, nil
	}
	if len(n.byName) >= maxNames {
		return netip.Addr{}, errNamesFull
	}
	if n.byName == nil {
		n.byName, n.byAddr = make(map[string]netip.Addr), make(map[netip.Addr]string)
	}
	a := n.free(name)
	n.byName[name], n.byAddr[a] = a, name
	return a, nil
}

// free finds the first free address from the one that name hashes to. The caller holds mu; the table is not full.
func (n *Names) free(name string) netip.Addr {
	h := fnv.New32a()
	h.Write([]byte(name))
	base := synthetic.Addr().As4()
	for slot := h.Sum32() % syntheticCount; ; slot = (slot + 1) % syntheticCount {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+syntheticFirst+slot)
		a := netip.AddrFrom4(b)
		if _, taken := n.byAddr[a]; !taken {
			return a
		}
	}
}

// Name returns the name that an address was given out for.
func (n *Names) Name(addr netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.byAddr[addr.Unmap()]
	return name, ok
}

func cleanName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// validName reports whether name, cleaned, could be a host's: letters, digits, "-" and "_" in dotted labels.
func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
