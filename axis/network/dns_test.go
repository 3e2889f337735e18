package network

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func query(t testing.TB, name string, typ dnsmessage.Type) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 4711, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: typ, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, b []byte) *dnsmessage.Message {
	t.Helper()
	m := new(dnsmessage.Message)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("reply %x: %v", b, err)
	}
	if m.ID != 4711 || !m.Response {
		t.Fatalf("header %+v is no reply to the query", m.Header)
	}
	return m
}

func TestAnswerDNS(t *testing.T) {
	var names Names
	addr, _ := names.Addr("api.example.com")
	q := addr.As4()
	reverse := fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa.", q[3], q[2], q[1], q[0])
	tests := []struct {
		name string
		typ  dnsmessage.Type
		code dnsmessage.RCode
		want string // "" for no record
	}{
		{"api.example.com.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, addr.String()},
		{"API.Example.COM.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, addr.String()},
		{"api.example.com.", dnsmessage.TypeALL, dnsmessage.RCodeSuccess, addr.String()},
		{"api.example.com.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		{"api.example.com.", dnsmessage.Type(65), dnsmessage.RCodeSuccess, ""},
		{"api.example.com.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, ""},
		{"localhost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "127.0.0.1"},
		{"db.localhost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "127.0.0.1"},
		{"with space.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{".", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{reverse, dnsmessage.TypePTR, dnsmessage.RCodeSuccess, "api.example.com."},
		{"1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeSuccess, "localhost."},
		{"1.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
		{"x.y.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name+tt.typ.String(), func(t *testing.T) {
			reply, _ := answerDNS(&names, query(t, tt.name, tt.typ))
			m := parse(t, reply)
			if m.RCode != tt.code {
				t.Errorf("code %v, want %v", m.RCode, tt.code)
			}
			if got := firstRecord(m); got != tt.want {
				t.Errorf("record %q, want %q", got, tt.want)
			}
		})
	}
}

func firstRecord(m *dnsmessage.Message) string {
	if len(m.Answers) == 0 {
		return ""
	}
	switch r := m.Answers[0].Body.(type) {
	case *dnsmessage.AResource:
		return netip.AddrFrom4(r.A).String()
	case *dnsmessage.PTRResource:
		return r.PTR.String()
	}
	return "other"
}

func TestMalformedDNS(t *testing.T) {
	good := query(t, "api.example.com.", dnsmessage.TypeA)
	noQuestion := append([]byte(nil), good[:dnsHeader]...)
	noQuestion[5] = 0
	for name, b := range map[string][]byte{
		"cut in the question": good[:len(good)-3],
		"header alone":        good[:dnsHeader],
		"no question":         noQuestion,
	} {
		reply, looked := answerDNS(new(Names), b)
		if m := parse(t, reply); m.RCode != dnsmessage.RCodeFormatError || looked != nil {
			t.Errorf("%s: code %v, want FORMERR", name, m.RCode)
		}
	}
	isReply := append([]byte(nil), good...)
	isReply[2] |= 0x80
	for name, b := range map[string][]byte{"short": good[:5], "empty": nil, "a reply": isReply} {
		if reply, _ := answerDNS(new(Names), b); reply != nil {
			t.Errorf("%s: got a reply %x", name, reply)
		}
	}
}

func FuzzAnswerDNS(f *testing.F) {
	f.Add(query(f, "api.example.com.", dnsmessage.TypeA))
	f.Add(query(f, "9.1.18.198.in-addr.arpa.", dnsmessage.TypePTR))
	f.Add([]byte{1, 2, 0x78, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 0x0c, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, _ := answerDNS(new(Names), b)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Fatalf("reply %x does not parse: %v", reply, err)
		}
		if !m.Response || m.ID != binary.BigEndian.Uint16(b) {
			t.Fatalf("reply %+v does not answer %x", m.Header, b)
		}
	})
}

// TestServeDNS asks over UDP and TCP.
func TestServeDNS(t *testing.T) {
	var names Names
	want, _ := names.Addr("api.example.com")
	d := NewDNS(&names, nil)
	pc, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- d.ServeUDP(pc) }()
	go func() { ended <- d.ServeTCP(l) }()

	port := pc.LocalAddr().(*net.UDPAddr).Port
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	if got := askUDP(t, conn); got != want.String() {
		t.Errorf("UDP said %q, want %s", got, want)
	}
	if got := askTCP(t, l.Addr().String()); got != want.String() {
		t.Errorf("TCP said %q, want %s", got, want)
	}
	d.Close()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	}
}

// askUDP asks on a connected socket.
func askUDP(t *testing.T, c net.Conn) string {
	t.Helper()
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 512)
	c.Write(query(t, "api.example.com.", dnsmessage.TypeA))
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return firstRecord(parse(t, buf[:n]))
}

func askTCP(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := query(t, "api.example.com.", dnsmessage.TypeA)
	c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...))
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, reply); err != nil {
		t.Fatal(err)
	}
	return firstRecord(parse(t, reply))
}
