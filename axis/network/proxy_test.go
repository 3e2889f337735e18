package network

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// proxyOf makes g a proxy too, and returns its address.
func (g *rig) proxyOf() string {
	g.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	go func() { // ends with g.srv
		if err := g.srv.ServeProxy(l); err != nil {
			g.t.Errorf("proxy: %v", err)
		}
	}()
	return l.Addr().String()
}

// proxied is a client that knows nothing of g but its proxy.
func (g *rig) proxied(protocol, addr string) *http.Client {
	c := g.client(protocol)
	tr := c.Transport.(*http.Transport)
	tr.DialContext = nil
	tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: addr})
	return c
}

func TestProxyRecordsAndAnswers(t *testing.T) {
	for _, tt := range []struct{ protocol, url string }{
		{"h1", "http://api.example.com/a?b=c"},
		{"h1", "http://api.example.com:80/port"},
		{"h1", "https://api.example.com/a"},
		{"h2", "https://other.example.com/b"},
	} {
		t.Run(tt.protocol+" "+tt.url, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, echo))
			first := ask(g.proxied(tt.protocol, g.proxyOf()), "POST", tt.url, []byte("hello"))
			if first.err != nil || first.status != http.StatusAccepted {
				t.Fatalf("recording: %+v", first)
			}
			want := strings.Replace(tt.url, ":80", "", 1)
			if ex := g.tap.exchanges()[0]; ex.URL != want {
				t.Errorf("%s on the tape, want %s", ex.URL, want)
			}
			rp := replayRig(g, nil)
			client := rp.proxied(tt.protocol, rp.proxyOf())
			compareReplies(t, first, ask(client, "POST", tt.url, []byte("hello")))
			if other := ask(client, "POST", tt.url, []byte("something else")); other.status != http.StatusBadRequest {
				t.Errorf("a request that is not on the tape: %+v", other)
			}
		})
	}
}

// TestProxyAndJailAgree records through a proxy and answers a program that dials: both see the same exchange.
func TestProxyAndJailAgree(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	first := ask(g.proxied("h1", g.proxyOf()), "GET", "https://api.example.com:8443/x", nil)
	if first.err == nil {
		t.Fatal("port 8443 has no upstream here")
	}
	first = ask(g.proxied("h1", g.proxyOf()), "GET", "https://api.example.com/x", nil)
	rp := replayRig(g, nil)
	compareReplies(t, first, ask(rp.client("h1"), "GET", "https://api.example.com/x", nil))
}

func TestProxyRefuses(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	addr := g.proxyOf()
	for _, tt := range []struct{ request, want string }{
		{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"GET ftp://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "400"},
		{"CONNECT api.example.com HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "400"},
		{"CONNECT api.example.com:99999 HTTP/1.1\r\nHost: api.example.com:99999\r\n\r\n", "400"},
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, tt.request)
		if line, _ := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, tt.want) {
			t.Errorf("%q: %q, want %s", tt.request, line, tt.want)
		}
		c.Close()
	}
	// What is no HTTP in a tunnel is refused as it is in the jail.
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT mail.example.com:25 HTTP/1.1\r\nHost: mail.example.com:25\r\n\r\n220 hello\r\n")
	if got, ok := g.waitRefused().(*tape.NetRefused); !ok || got.Addr != "mail.example.com" || got.Port != 25 || got.Reason != "not HTTP or TLS" {
		t.Errorf("refused %+v", got)
	}
}

// TestProxyCloses ends a Server while a tunnel is open.
func TestProxyCloses(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	c, err := net.Dial("tcp", g.proxyOf())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n")
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	g.srv.Close()
	if _, err := io.Copy(io.Discard, r); err != nil && !exchange.IsReset(err) {
		t.Errorf("after Close: %v", err)
	}
}
