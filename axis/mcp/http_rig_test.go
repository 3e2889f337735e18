package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// webHost is where the programs of these tests find their servers.
const webHost = "mcp.example.com"

// A webRig is a network.Server between a client and a server of MCP over HTTP, with its tape.
type webRig struct {
	t     *testing.T
	file  lockedFile
	store *cas.Memory
	rec   *tape.Recorder
	class exchange.Classifier
	scrub *scrub.Scrubber
	over  *mcp.OverHTTP
	book  *exchange.Book // of a replay
	srv   *network.Server
	in    *pipes // of the program
	ended bool
}

type lockedFile struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedFile) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// recordWeb records what is said to the server h.
func recordWeb(t *testing.T, h http.Handler, env ...string) *webRig {
	t.Helper()
	up := httptest.NewServer(h)
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	return newWebRig(t, up.URL, nil, env...)
}

// replay answers f from what g recorded, which ends with that. The time in which lines are held passes at once.
func (g *webRig) replay(f func(again *webRig), env ...string) {
	g.t.Helper()
	g.end()
	synctest.Test(g.t, func(t *testing.T) {
		again := newWebRig(t, "", g, env...)
		defer again.end()
		f(again)
	})
}

func newWebRig(t *testing.T, upstream string, from *webRig, env ...string) *webRig {
	t.Helper()
	masker := masks.New(nil)
	g := &webRig{t: t, store: cas.NewMemory(), scrub: scrub.New(scrub.Key{1}, &scrub.Options{Env: env})}
	g.class = mcp.NewClassifier(llm.NewClassifier(masker), masker)
	w, err := tape.NewWriter(&g.file, &tape.Header{Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	g.rec = tape.NewRecorder(w, &tape.RecorderOptions{Store: g.store, Now: func() (int64, int64) {
		return time.Now().UnixMilli(), time.Since(begun).Milliseconds()
	}})
	cfg := &network.Config{Names: new(network.Names)}
	if cfg.CA, err = network.NewCA(); err != nil {
		t.Fatal(err)
	}
	o := &mcp.OverHTTPOptions{}
	if from == nil {
		cfg.Upstreams = map[string]string{webHost: upstream}
	} else {
		if g.book, err = exchange.NewBook(from.reader().Records(), g.class, from.store); err != nil {
			t.Fatal(err)
		}
		cfg.Book, cfg.Blobs, cfg.Reveal = g.book, from.store, g.scrub.Reveal
		if o.Book, err = mcp.NewBook(from.reader().Records(), from.store, &mcp.BookOptions{Scrub: g.scrub, Mask: masker}); err != nil {
			t.Fatal(err)
		}
		o.Reveal = g.scrub.Reveal
	}
	o.Log = mcp.NewLog(g.rec, g.scrub, masker, &mcp.LogOptions{Taken: 100})
	if from == nil {
		o.Log = mcp.NewLog(g.rec, g.scrub, masker, nil)
	}
	g.over = mcp.NewOverHTTP(o)
	cfg.Tap = exchange.NewTap(g.rec, g.class, g.scrub, &exchange.TapOptions{
		Replay: from != nil, Closed: from != nil, TrueLength: true, Conversations: g.over,
	})
	if g.srv, err = network.New(cfg); err != nil {
		t.Fatal(err)
	}
	g.in = newPipes(&net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 80}) // of somewhere else, as in a jail
	go g.srv.Serve(g.in)
	t.Cleanup(g.end)
	return g
}

// end ends the run.
func (g *webRig) end() {
	if g.ended {
		return
	}
	g.ended = true
	g.srv.Close()
	if err := g.over.End(); err != nil {
		g.t.Error(err)
	}
	if err := g.rec.Flush(); err != nil {
		g.t.Error(err)
	}
}

// pipes are a listener in memory. Its connections say that they were dialled at an address.
type pipes struct {
	addr net.Addr
	come chan net.Conn
	done chan struct{}
	once sync.Once
}

func newPipes(addr net.Addr) *pipes {
	return &pipes{addr: addr, come: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return dialledConn{c, l.addr}, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipes) Addr() net.Addr { return l.addr }

func (l *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.come <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type dialledConn struct {
	net.Conn
	addr net.Addr
}

func (c dialledConn) LocalAddr() net.Addr { return c.addr }

// serveHere serves h in memory, as on the loopback.
func serveHere(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	in := newPipes(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
	srv := &httptest.Server{Listener: in, Config: &http.Server{Handler: h}}
	srv.Start()
	srv.Client().Transport.(*http.Transport).DialContext = in.dial
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv
}

// client is the HTTP client of a program.
func (g *webRig) client() *http.Client {
	tr := &http.Transport{DialContext: g.in.dial}
	g.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (g *webRig) reader() *tape.Reader {
	g.t.Helper()
	r, err := tape.NewReader(bytes.NewReader(g.file.bytes()), "test")
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func (g *webRig) records() (all []*tape.Record) {
	g.t.Helper()
	for r, err := range g.reader().Records() {
		if err != nil {
			g.t.Fatal(err)
		}
		c := *r
		all = append(all, &c)
	}
	return all
}

// calls are the mcp_json_rpc of the tape, a line each, sorted: the server, who asked, the method, whether it was answered, the error. Pings are
// left out: they may come as often as they do.
func (g *webRig) calls() (lines []string) {
	for _, r := range g.records() {
		if k, ok := r.Kind.(*tape.MCPJSONRPC); ok && k.Method != "ping" {
			from := k.From
			if from == "" {
				from = "client"
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %t %s",
				k.Conversation, k.Server, from, k.Method, k.Answered > 0, k.Error)))
		}
	}
	slices.Sort(lines)
	return lines
}

// faithful fails the test unless the replay g asked for what was recorded, and for no more.
func (g *webRig) faithful() {
	g.t.Helper()
	g.end()
	if n := g.book.Audit(); n != 0 {
		g.t.Errorf("%d crossed answers", n)
	}
	for _, rec := range g.book.Unasked() {
		if m := rec.Exchange.Method; m == http.MethodPost {
			g.t.Errorf("not asked for: %s %s %s", m, rec.Exchange.URL, rec.Exchange.RequestPayload.Text)
		}
	}
	for _, r := range g.records() {
		if x := tape.ExchangeOf(r.Kind); x != nil && x.Lane == exchange.Unmatched {
			g.t.Errorf("refused: %s %s: %s", x.Method, x.URL, x.Error)
		}
	}
}
