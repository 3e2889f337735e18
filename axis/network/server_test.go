package network

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// echo answers with what it was asked, and says so in its header.
func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Seen", r.Method+" "+r.URL.RequestURI())
	w.Header().Set("Content-Type", "text/plain")
	if r.URL.Path == "/nothing" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "%s %s %q", r.Method, r.URL.RequestURI(), b)
}

// upstreamOf starts a real server and returns a configuration that sends api.example.com there.
func upstreamOf(t testing.TB, h http.HandlerFunc) func(*Config) {
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	return sendTo(up.URL)
}

func sendTo(url string) func(*Config) {
	return func(cfg *Config) { cfg.Upstreams = map[string]string{"api.example.com": url, "other.example.com": url} }
}

func TestRecordAndReplay(t *testing.T) {
	tests := []struct{ protocol, scheme, method, path, body string }{
		{"h1", "http", "GET", "/a?b=c%20d", ""},
		{"h1", "https", "POST", "/a%2Fb", "hello"},
		{"h2", "https", "POST", "/a", strings.Repeat("long", 50_000)},
		{"h2c", "http", "PUT", "/a", "x"},
		{"h1", "https", "HEAD", "/a", ""},
		{"h2", "https", "HEAD", "/a", ""},
		{"h1", "http", "DELETE", "/nothing", ""},
		{"h2", "https", "GET", "/nothing", ""},
	}
	for _, tt := range tests {
		t.Run(tt.protocol+" "+tt.method+" "+tt.path, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, echo))
			url := tt.scheme + "://api.example.com" + tt.path
			first := ask(g.client(tt.protocol), tt.method, url, []byte(tt.body))
			if n := len(g.tap.exchanges()); n != 1 {
				t.Fatalf("%d exchanges on the tape when the client had its answer, want 1", n)
			}
			if first.err != nil || first.header.Get("X-Seen") != tt.method+" "+tt.path {
				t.Fatalf("recording: %+v", first)
			}
			if ex := g.tap.exchanges()[0]; ex.URL != url || ex.Method != tt.method || ex.Status != first.status || ex.Error != "" {
				t.Errorf("on the tape: %+v", ex)
			}
			rp := replayRig(g, nil)
			second := ask(rp.client(tt.protocol), tt.method, url, []byte(tt.body))
			compareReplies(t, first, second)
			if n := len(rp.tap.exchanges()); n != 1 {
				t.Errorf("%d exchanges on the replay's tape, want 1", n)
			}
		})
	}
}

func compareReplies(t *testing.T, want, got reply) {
	t.Helper()
	if got.err != nil || got.status != want.status || !bytes.Equal(got.body, want.body) {
		t.Errorf("replay gave %d %q %v, want %d %q", got.status, got.body, got.err, want.status, want.body)
	}
	for name := range want.header {
		if got.header.Get(name) != want.header.Get(name) {
			t.Errorf("%s is %q on replay, was %q", name, got.header.Get(name), want.header.Get(name))
		}
	}
	for name := range got.header {
		if _, ok := want.header[name]; !ok {
			t.Errorf("%s is on replay alone", name)
		}
	}
}

// TestMiss sees a clear failure at once for whatever is not on the tape, and nothing dialled.
func TestMiss(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	ask(g.client("h1"), "POST", "https://api.example.com/v1", []byte("one"))
	rp := replayRig(g, nil)
	for _, tt := range []struct{ method, url, body string }{
		{"POST", "https://api.example.com/v1", "two"},
		{"GET", "https://api.example.com/v1", ""},
		{"POST", "https://evil.example.com/v1", "one"},
		{"GET", "http://192.0.2.7/latest", ""},
	} {
		got := ask(rp.client("h1"), tt.method, tt.url, []byte(tt.body))
		if got.err != nil || got.status != 400 || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s: %+v", tt.method, tt.url, got)
		}
		if !bytes.Contains(got.body, []byte(tt.method+" "+tt.url)) {
			t.Errorf("%s %s: the answer does not name the request: %s", tt.method, tt.url, got.body)
		}
	}
	if got := ask(rp.client("h1"), "POST", "https://api.example.com/v1", []byte("one")); got.status != http.StatusAccepted {
		t.Errorf("the recorded request got %+v after the misses", got)
	}
	if got := ask(rp.client("h1"), "POST", "https://api.example.com/v1", []byte("one")); got.status != 400 {
		t.Errorf("the recorded request got %+v a second time", got)
	}
}

// TestMissInProvidersShape has the identity of a request say what an error looks like.
func TestMissInProvidersShape(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	ask(g.client("h2"), "POST", "https://api.example.com/shaped/v1", []byte(`{"a":1,"b":"recorded"}`))
	got := ask(replayRig(g, nil).client("h2"), "POST", "https://api.example.com/shaped/v1", []byte(`{"a":1,"b":"asked"}`))
	var body struct {
		Status int
		Shaped string
	}
	if err := json.Unmarshal(got.body, &body); err != nil || got.status != 400 || body.Status != 400 {
		t.Fatalf("got %d %s, %v", got.status, got.body, err)
	}
	for _, want := range []string{"recorded", "asked", "/shaped/v1"} {
		if !strings.Contains(body.Shaped, want) {
			t.Errorf("the answer does not say %q: %s", want, body.Shaped)
		}
	}
}

// TestConcurrentStreams has 100 requests of one HTTP/2 connection under way at the same moment.
func TestConcurrentStreams(t *testing.T) {
	const n = 100
	var all sync.WaitGroup
	all.Add(n)
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		all.Done()
		all.Wait()
		fmt.Fprintf(w, "answer to %s", b)
	}))
	askAll := func(c *http.Client) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				q := fmt.Sprintf("question %d", i)
				got := ask(c, "POST", "https://api.example.com/v1", []byte(q))
				if string(got.body) != "answer to "+q {
					t.Errorf("%s got %q %v", q, got.body, got.err)
				}
			})
		}
		wg.Wait()
	}
	askAll(g.client("h2"))
	askAll(replayRig(g, nil).client("h2"))
}

// TestDenied holds what a Server answers itself, and that it is on the tape and replayed.
func TestDenied(t *testing.T) {
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"SNI and Host disagree", func(r *http.Request) { r.Host = "other.example.com" }, 421},
		{"long body", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", 2000))), 2000
		}, 413},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			request := func() *http.Request {
				r, _ := http.NewRequest("POST", "https://api.example.com/v1", nil)
				tt.change(r)
				return r
			}
			g := newRig(t, func(cfg *Config) {
				cfg.MaxBody = 1000
				sendTo(noDial(t))(cfg)
			})
			first := do(g.client("h1"), request())
			if first.status != tt.status || first.header.Get("X-Should-Retry") != "false" {
				t.Fatalf("got %+v, want status %d", first, tt.status)
			}
			if ex := g.tap.exchanges(); len(ex) != 1 || ex[0].Status != tt.status {
				t.Fatalf("on the tape: %+v", ex)
			}
			rp := replayRig(g, func(cfg *Config) { cfg.MaxBody = 1000 })
			compareReplies(t, first, do(rp.client("h1"), request()))
		})
	}
}

// TestUpgrades sees a request for a WebSocket that was answered 426, by an older recorder or an upstream, answered so on a replay,
// however often it is asked for: the program goes on by HTTP then as it did. One that was not recorded is a refusal, which says
// 426 too where no WebSocket is on the tape.
func TestUpgrades(t *testing.T) {
	upgrade := func(g *rig, path string) reply {
		r, _ := http.NewRequest("GET", "https://api.example.com"+path, nil)
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Connection", "Upgrade")
		return do(g.client("h1"), r)
	}
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "use HTTP", http.StatusUpgradeRequired)
	}))
	first := upgrade(g, "/ws")
	rp := replayRig(g, nil)
	for range 3 {
		compareReplies(t, first, upgrade(rp, "/ws"))
	}
	if got := upgrade(rp, "/other"); got.status != http.StatusUpgradeRequired {
		t.Errorf("one that is not on the tape got %+v", got)
	}
	if got := ask(rp.client("h1"), "GET", "https://api.example.com/ws", nil); got.status != exchange.RefusedStatus {
		t.Errorf("a request for no upgrade got %d", got.status)
	}
	for i, ex := range rp.tap.exchanges() {
		if matched := i < 3; (ex.Lane != exchange.Unmatched) != matched || (ex.Error == "") != matched {
			t.Errorf("%d on the replay's tape: %+v", i, ex)
		}
	}
}

func TestTLSRefused(t *testing.T) {
	g := newRig(t, nil)
	t.Run("in the handshake", func(t *testing.T) {
		raw, err := g.dial(context.Background(), "tcp", "api.example.com:443")
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		c := tls.Client(raw, &tls.Config{ServerName: "api.example.com"}) // with the system's roots
		if err := c.Handshake(); err == nil {
			t.Fatal("a client without the CA took its certificate")
		}
		checkTLSRefused(t, g.waitRefused(), "api.example.com")
	})
	t.Run("after the handshake", func(t *testing.T) { // what Node does
		raw, err := g.dial(context.Background(), "tcp", "192.0.2.9:443")
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		c.Close()
		checkTLSRefused(t, g.waitRefused(), "192.0.2.9")
	})
}

func checkTLSRefused(t *testing.T, k tape.Kind, host string) {
	t.Helper()
	r, ok := k.(*tape.TLSRefused)
	if !ok || r.Host != host || r.Port != 443 || r.Reason == "" {
		t.Errorf("recorded %#v", k)
	}
}

func TestOtherProtocolIsRefused(t *testing.T) {
	g := newRig(t, nil)
	for _, hello := range []string{"SSH-2.0-OpenSSH_9.6p1 Ubuntu\r\n", "\x00\x01\x02", "hello world", strings.Repeat("A", 100)} {
		c, err := g.dial(context.Background(), "tcp", "git.example.com:443")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, hello)
		if b, _ := io.ReadAll(c); len(b) > 0 {
			t.Errorf("%q got %q", hello, b)
		}
		c.Close()
		if r, ok := g.waitRefused().(*tape.NetRefused); !ok || r.Addr != "git.example.com" || r.Port != 443 {
			t.Errorf("%q: recorded %#v", hello, r)
		}
	}
}

func TestASilentConnectionToALiteralAddressIsOnTheTape(t *testing.T) {
	g := newRig(t, nil)
	c, err := g.dial(context.Background(), "tcp", "192.0.2.7:443")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if r, ok := g.waitRefused().(*tape.NetRefused); !ok || r.Addr != "192.0.2.7" || r.Port != 443 {
		t.Errorf("recorded %#v", r)
	}
}

func TestPassthrough(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	passed := make(chan string, 1)
	g := newRig(t, func(cfg *Config) {
		cfg.Upstreams = map[string]string{"api.example.com": up.URL}
		cfg.Passthrough = []string{"API.example.com"}
		cfg.Passed = func(host string) { passed <- host }
	})
	c := g.client("h2")
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: up.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	c.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true // the test server's certificate names example.com
	got := ask(c, "GET", "https://api.example.com/unread", nil)
	if got.err != nil || got.header.Get("X-Seen") != "GET /unread" {
		t.Fatalf("got %+v", got)
	}
	if host := <-passed; host != "api.example.com" {
		t.Errorf("passed %q", host)
	}
	if n := len(g.tap.exchanges()); n != 0 {
		t.Errorf("%d exchanges on the tape of an unread connection", n)
	}
	c.CloseIdleConnections()
	rp := replayRig(g, func(cfg *Config) { cfg.Passthrough = []string{"api.example.com"} })
	if got := ask(rp.client("h1"), "GET", "https://api.example.com/unread", nil); got.err == nil {
		t.Errorf("replay answered an unread connection: %+v", got)
	}
	if _, ok := rp.waitRefused().(*tape.NetRefused); !ok {
		t.Error("replay did not record the refusal")
	}
}

// TestInsideIsClosed asks for the recorder's own host in every way that a program can.
func TestInsideIsClosed(t *testing.T) {
	g := newRig(t, func(cfg *Config) { cfg.Upstreams = map[string]string{"api.example.com": noDial(t)} })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(noDial(t), "http://"))
	for _, host := range []string{"localhost", "127.0.0.1", "127.1.2.3", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "fe80::1"} {
		c := g.client("h1")
		c.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return g.dial(ctx, "tcp", net.JoinHostPort("192.0.2.1", port))
		}
		if got := ask(c, "GET", "http://"+net.JoinHostPort(host, port)+"/", nil); got.err == nil {
			t.Errorf("%s answered %+v", host, got)
		}
	}
	for _, ex := range g.tap.exchanges() {
		if ex.Status != 0 || ex.Error == "" {
			t.Errorf("on the tape: %+v", ex)
		}
	}
	var forbidden *ForbiddenError
	if err := new(guard).check(context.Background(), "tcp", "[::ffff:127.0.0.1]:80", nil); !errors.As(err, &forbidden) {
		t.Errorf("a mapped loopback address: %v", err)
	}
}

// TestDeadHost sees a host that never answered while recording fail on replay whatever is asked of it.
func TestDeadHost(t *testing.T) {
	l := listenLoopback(t)
	l.Close() // nobody listens there any more
	g := newRig(t, sendTo("http://"+l.Addr().String()))
	if got := ask(g.client("h1"), "POST", "https://api.example.com/t", []byte("1")); got.err == nil {
		t.Fatalf("an upstream that is not there answered %+v", got)
	}
	rp := replayRig(g, nil)
	for _, body := range []string{"1", "2", "3"} {
		if got := ask(rp.client("h1"), "POST", "https://api.example.com/t", []byte(body)); got.err == nil {
			t.Errorf("replay answered %+v", got)
		}
	}
	for _, ex := range rp.tap.exchanges() {
		if ex.Status != 0 || ex.Error == "" {
			t.Errorf("on the replay's tape: %+v", ex)
		}
	}
}

func TestContinue(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	c, err := g.dial(context.Background(), "tcp", "api.example.com:80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /c HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	r := textproto.NewReader(bufio.NewReader(c))
	if line, err := r.ReadLine(); err != nil || line != "HTTP/1.1 100 Continue" {
		t.Fatalf("got %q, %v", line, err)
	}
	r.ReadLine()
	io.WriteString(c, "hi")
	res, err := http.ReadResponse(r.R, nil)
	if err != nil || res.StatusCode != http.StatusAccepted {
		t.Fatalf("got %+v, %v", res, err)
	}
}

func TestHeadersTowardsUpstream(t *testing.T) {
	seen := make(chan *http.Request, 1)
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("Connection", "x-mine")
		w.Header().Set("X-Mine", "1")
	}))
	req, _ := http.NewRequest("GET", "https://api.example.com/", nil)
	for name, value := range map[string]string{
		"Connection": "X-Hop", "X-Hop": "1", "Te": "trailers, deflate", "Proxy-Authorization": "x", "X-Keep": "2", "User-Agent": "",
		"Accept-Encoding": "gzip;q=1.0, compress, snappy, br, *;q=0.1",
	} {
		req.Header.Set(name, value)
	}
	got := do(g.client("h1"), req)
	up := <-seen
	for name, want := range map[string]string{
		"X-Hop": "", "Te": "trailers", "Proxy-Authorization": "", "X-Keep": "2", "User-Agent": "", "Accept-Encoding": "gzip;q=1.0, br",
	} {
		if have := up.Header.Get(name); have != want {
			t.Errorf("the upstream got %s: %q, want %q", name, have, want)
		}
	}
	for _, name := range []string{"Alt-Svc", "X-Mine"} {
		if got.header.Get(name) != "" {
			t.Errorf("the program got %s: %q", name, got.header.Get(name))
		}
	}
}
