package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// wsScript runs a client, which says "hello" to wss://api.example.com/a in text, 3,000 bytes in binary, and closes with 4000 "done"; it
// prints what it got.
type wsScript struct {
	program string
	args    []string
	env     []string
}

// run has the script talk to g.
func (s *wsScript) run(t *testing.T, g *rig) string {
	t.Helper()
	_, port, err := net.SplitHostPort(g.real("api.example.com:443"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), s.program, append(s.args, port)...)
	ca := caFile(t, g)
	cmd.Env = append(append(os.Environ(), s.env...), "NODE_EXTRA_CA_CERTS="+ca, "SSL_CERT_FILE="+ca)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	return string(out)
}

const wsPython = `
import asyncio, ssl, sys
try:
    import websockets
except ImportError:
    print("skip"); sys.exit(0)
async def main():
    ctx = ssl.create_default_context()
    async with websockets.connect("wss://api.example.com/a", host="127.0.0.1", port=int(sys.argv[1]), ssl=ctx, server_hostname="api.example.com") as ws:
        await ws.send("hello")
        print(await ws.recv())
        for i in range(2):
            await ws.send(b"x" * 3000)
            print(len(await ws.recv()))
        await (await ws.ping())
        await ws.close(4000, "done")
        print(ws.close_code, ws.close_reason)
asyncio.run(main())
`

// wsNode is for the package ws where there is one, else for Node's own WebSocket.
const wsNode = `
const tls = require("tls"), port = Number(process.argv[process.argv.length - 1]);
let WS;
try { WS = require("ws"); } catch (e) { console.log("skip"); process.exit(0); }
const ws = new WS("wss://api.example.com/a", {createConnection: o => tls.connect({host: "127.0.0.1", port, servername: "api.example.com"})});
const got = [];
ws.on("open", () => ws.send("hello"));
ws.on("message", (b, binary) => {
	got.push(binary ? b.length : b.toString());
	if (got.length < 3) ws.send(Buffer.alloc(3000, "x"));
	else { ws.ping(); }
});
ws.on("pong", () => ws.close(4000, "done"));
ws.on("close", (code, reason) => { console.log(got.join(" "), code, reason.toString()); });
ws.on("error", e => { console.error(e); process.exit(1); });
`

// wsScripts are the clients that are here.
func wsScripts(t *testing.T) map[string]*wsScript {
	scripts := make(map[string]*wsScript)
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(python); err == nil && exec.Command(path, "-c", "import websockets").Run() == nil {
			scripts["python3-websockets"] = &wsScript{program: path, args: []string{"-c", wsPython}}
		}
	}
	if node, err := exec.LookPath("node"); err == nil && exec.Command(node, "-e", `require("ws")`).Run() == nil {
		file := filepath.Join(t.TempDir(), "ws.cjs")
		if err := os.WriteFile(file, []byte(wsNode), 0o600); err != nil {
			t.Fatal(err)
		}
		scripts["ws of npm"] = &wsScript{program: node, args: []string{file}}
	}
	if len(scripts) == 0 {
		t.Skip("neither python3-websockets nor the npm package ws (NODE_PATH) is installed here")
	}
	return scripts
}

// TestSocketClients records and replays real clients, with compression as they and the server agree on.
func TestSocketClients(t *testing.T) {
	for name, script := range wsScripts(t) {
		for _, mode := range []websocket.CompressionMode{websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
			t.Run(name, func(t *testing.T) {
				g := newRig(t, upstreamOf(t, wsEcho(&websocket.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})))
				first := script.run(t, g)
				if !strings.Contains(first, "hello") || !strings.Contains(first, "3000") || !strings.Contains(first, "4000 done") {
					t.Fatalf("got %s", first)
				}
				rp := replayRig(g, nil)
				if second := script.run(t, rp); second != first {
					t.Errorf("replay gave %s, want %s", second, first)
				}
				rp.srv.Close()
				wantSaid(t, rp.tap, wsSaid(t, g.tap)...)
			})
		}
	}
}

// TestSocketThroughProxy: a program behind the recorder's proxy has its socket in a tunnel, or by a request in absolute form.
func TestSocketThroughProxy(t *testing.T) {
	for _, scheme := range []string{"ws", "wss"} {
		t.Run(scheme, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, wsEcho(nil)))
			hello := func(g *rig) {
				c, _, err := websocket.Dial(t.Context(), scheme+"://api.example.com/a", &websocket.DialOptions{HTTPClient: g.proxied("h1", g.proxyOf())})
				if err != nil {
					t.Fatal(err)
				}
				defer c.CloseNow()
				if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, b, err := c.Read(t.Context()); err != nil || string(b) != "hello" {
					t.Fatalf("got %q, %v", b, err)
				}
				c.Close(websocket.StatusNormalClosure, "")
				g.srv.Close()
			}
			hello(g)
			want := []string{
				"open " + scheme + "://api.example.com/a ws:api.example.com", "sent text hello", "received text hello",
				`close 1000  direction="sent" answer=[1000,""]`,
			}
			wantSaid(t, g.tap, want...)
			rp := replayRig(g, nil)
			hello(rp)
			wantSaid(t, rp.tap, want...)
		})
	}
}

// TestSocketIsNotDialledInside: a socket to the inside of the host is refused as any request is, and so is one whose host is not the
// connection's.
func TestSocketIsNotDialledInside(t *testing.T) {
	inside := httptest.NewServer(wsEcho(nil))
	t.Cleanup(inside.Close)
	g := newRig(t, nil)
	if _, _, err := g.wsDial("ws"+strings.TrimPrefix(inside.URL, "http"), nil); err == nil {
		t.Error("a socket to the loopback was opened")
	}
	if _, res, err := g.wsDial("wss://api.example.com/a", &websocket.DialOptions{Host: "other.example.com"}); err == nil || res == nil ||
		res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("got %v, %v", res, err)
	}
	g.srv.Close()
	if ex := g.tap.exchanges(); len(ex) != 2 || ex[0].Status != 0 || !strings.HasSuffix(ex[0].Error, OnlyNamed) {
		t.Errorf("on the tape: %+v", ex)
	}
}

// TestSocketBehindProxy: the recorder reaches an upstream through the proxy of its environment, in a tunnel.
func TestSocketBehindProxy(t *testing.T) {
	up := httptest.NewTLSServer(wsEcho(nil))
	t.Cleanup(up.Close)
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		to, err := net.Dial("tcp", up.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		c.Write([]byte("HTTP/1.1 200 ok\r\n\r\n"))
		splice(context.Background(), &conn{Conn: c, in: c}, to)
	}))
	t.Cleanup(proxy.Close)
	g := newRig(t, func(cfg *Config) {
		cfg.ProxyEnv = []string{"HTTPS_PROXY=" + proxy.URL}
		cfg.RootCAs = up.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	})
	c, _, err := g.wsDial("wss://example.com/a", nil) // the name of httptest's certificate
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, b, err := c.Read(t.Context()); err != nil || string(b) != "hello" {
		t.Fatalf("got %q, %v", b, err)
	}
	if got := <-asked; got != "CONNECT example.com:443" {
		t.Errorf("the proxy was asked %s", got)
	}
	c.CloseNow()
}

// TestNoExtendedConnect: over HTTP/2 no WebSocket is offered.
func TestNoExtendedConnect(t *testing.T) {
	g := newRig(t, nil)
	raw, err := g.dial(t.Context(), "tcp", "api.example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	c := tls.Client(raw, &tls.Config{RootCAs: g.pool, ServerName: "api.example.com", NextProtos: []string{"h2"}})
	if _, err := c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 9)
	if _, err := c.Read(head); err != nil || head[3] != 4 {
		t.Fatalf("got %x, %v", head, err)
	}
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := c.Read(settings); err != nil {
		t.Fatal(err)
	}
	for at := 0; at+6 <= len(settings); at += 6 {
		if settings[at] == 0 && settings[at+1] == 8 { // SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441, 3)
			t.Errorf("extended CONNECT is offered: %x", settings)
		}
	}
}
