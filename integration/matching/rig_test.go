package matching

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The hosts that programs ask: a model, and plain HTTP.
const (
	model = "api.example.com"
	tools = "tools.example.com"
)

// A run is one recording or one replay: a Server in front of a tape on the disk.
type run struct {
	t     testing.TB
	dir   string
	mask  *masks.Masker
	store *cas.Dir
	blobs cas.Store // of what a replay is answered from
	file  *os.File
	rec   *tape.Recorder
	book  *exchange.Book // nil while recording
	srv   *network.Server
	names *network.Names
	roots *x509.CertPool
	held  *arrivals // of a recording: bodies of requests that nobody answers before their sender gives up

	mu        sync.Mutex
	listeners map[netip.AddrPort]*jailListener
	ended     sync.Once
}

// record begins a recording of what the hosts at the URL upstream answer.
func record(t testing.TB, upstream string) *run {
	return begin(t, nil, &network.Config{Upstreams: map[string]string{model: upstream, tools: upstream}})
}

// replay begins a replay of r at a speed, as network.Config has it.
func (r *run) replay(speed float64) *run {
	r.t.Helper()
	r.end()
	return begin(r.t, r, &network.Config{Speed: speed})
}

func begin(t testing.TB, recorded *run, cfg *network.Config) *run {
	t.Helper()
	r := &run{
		t: t, dir: t.TempDir(), mask: masks.New(nil), names: new(network.Names), roots: x509.NewCertPool(),
		listeners: make(map[netip.AddrPort]*jailListener),
	}
	r.openTape()
	class := llm.NewClassifier(r.mask)
	if recorded != nil {
		f := recorded.tape()
		defer f.Close()
		book, err := exchange.NewBook(f.Records(), class, recorded.store)
		must(t, err)
		r.book, r.blobs, cfg.Book, cfg.Blobs = book, recorded.store, book, recorded.store
	}
	ca, err := network.NewCA()
	must(t, err)
	r.roots.AppendCertsFromPEM(ca.PEM())
	opts := &exchange.TapOptions{Replay: recorded != nil}
	if recorded == nil {
		opts.PartDir = filepath.Join(r.dir, "parts")
	}
	cfg.CA, cfg.Names = ca, r.names
	cfg.Tap = exchange.NewTap(r.rec, class, scrub.New(scrub.Key{}, nil), opts)
	r.srv, err = network.New(cfg)
	must(t, err)
	t.Cleanup(r.end)
	return r
}

// left counts what the recording of a replay has for a body that was not asked for so far; 0 while recording.
func (r *run) left(body string) (n int) {
	if r.book == nil {
		return 0
	}
	for _, rec := range r.book.Unasked() {
		b, err := rec.Exchange.RequestPayload.Bytes(r.blobs)
		must(r.t, err)
		if string(b) == body {
			n++
		}
	}
	return n
}

func (r *run) openTape() {
	r.t.Helper()
	path := r.path()
	f, err := os.Create(path)
	must(r.t, err)
	r.file = f
	r.store, err = cas.OpenDir(path+tape.StoreSuffix, nil)
	must(r.t, err)
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test"})
	must(r.t, err)
	r.rec = tape.NewRecorder(w, &tape.RecorderOptions{Store: r.store})
}

func (r *run) path() string { return filepath.Join(r.dir, "run.tape") }

func (r *run) tape() *tape.Tape {
	r.t.Helper()
	f, err := tape.Open(r.path(), nil)
	must(r.t, err)
	return f
}

// end closes the Server and the tape, once.
func (r *run) end() {
	r.ended.Do(func() {
		r.srv.Close()
		if err := r.rec.Flush(); err != nil {
			r.t.Errorf("tape: %v", err)
		}
		r.file.Close()
	})
}

// compare is the verdict on a replay of r, which has ended.
func (r *run) compare(replay *run) *fidelity.Report {
	r.t.Helper()
	a, b := r.tape(), replay.tape()
	defer a.Close()
	defer b.Close()
	report, err := fidelity.CompareLanes(fidelity.Semantic, a.Records(), b.Records(), &fidelity.LaneOptions{
		Crossed: replay.book.Audit(),
		Masks:   [2]*masks.Masker{r.mask, r.mask},
		Payload: func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
			return p.Bytes([]cas.Store{r.store, replay.store}[s])
		},
	})
	must(r.t, err)
	return report
}

// dial connects as a program in a jail would: the connection that the Server gets says that it was dialled at the
// synthetic address of the host.
func (r *run) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ip, err := r.names.Addr(host)
	if err != nil {
		return nil, err
	}
	real, err := r.listen(netip.MustParseAddrPort(net.JoinHostPort(ip.String(), port)))
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", real)
}

// listen returns the loopback address behind a dialled one.
func (r *run) listen(dialled netip.AddrPort) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.listeners[dialled]
	if l == nil {
		on, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		l = &jailListener{Listener: on, dialled: net.TCPAddrFromAddrPort(dialled)}
		r.listeners[dialled] = l
		go r.srv.Serve(l) // closes l and ends with the Server
	}
	return l.Addr().String(), nil
}

// connections counts those to a port of a host.
func (r *run) connections(host string, port uint16) int64 {
	ip, err := r.names.Addr(host)
	must(r.t, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listeners[netip.AddrPortFrom(ip, port)].accepted.Load()
}

type jailListener struct {
	net.Listener
	dialled  net.Addr
	accepted atomic.Int64
}

func (l *jailListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	return &jailConn{c, l.dialled}, nil
}

type jailConn struct {
	net.Conn
	dialled net.Addr
}

func (c *jailConn) LocalAddr() net.Addr { return c.dialled }

// client is an HTTP client that speaks one protocol, "h1" or "h2".
func (r *run) client(protocol string) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(protocol == "h1")
	p.SetHTTP2(protocol == "h2")
	tr := &http.Transport{
		DialContext: r.dial, Protocols: p, TLSClientConfig: &tls.Config{RootCAs: r.roots}, MaxIdleConnsPerHost: 100,
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
