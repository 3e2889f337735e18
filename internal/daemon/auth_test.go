package daemon_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// plain is a client that knows frames alone, of the WebSocket library itself.
type plain struct {
	t  testing.TB
	ws *websocket.Conn
}

func (r *rig) plain() *plain {
	r.t.Helper()
	ws, _, err := websocket.Dial(r.t.Context(), r.URL(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(64 << 20)
	return &plain{r.t, ws}
}

func (p *plain) send(frame string) {
	p.t.Helper()
	if err := p.ws.Write(p.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the next frame, or how the connection was closed.
func (p *plain) read() (string, websocket.StatusCode) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	_, b, err := p.ws.Read(ctx)
	if err != nil {
		code := websocket.CloseStatus(err)
		if code < 0 {
			p.t.Fatalf("read: %v", err)
		}
		return "", code
	}
	return string(b), 0
}

func (p *plain) want(frame string) {
	p.t.Helper()
	if got, code := p.read(); got != frame {
		p.t.Fatalf("got %s (%d), want %s", got, code, frame)
	}
}

func TestAnythingBeforeAuthIsRefusedAndCloses(t *testing.T) {
	r := start(t, nil)
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"runs.list","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server.handshake","params":{"protocol_version":3}}`,
		`{"jsonrpc":"2.0","id":1,"method":"no.such"}`,
	} {
		p := r.plain()
		p.send(frame)
		p.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"auth required: call session.auth first"}}`)
		if _, code := p.read(); code != websocket.StatusPolicyViolation {
			t.Errorf("%s: closed with %d", frame, code)
		}
	}
	p := r.plain()
	p.send(`{"jsonrpc":"2.0","method":"runs.list"}`)
	if got, code := p.read(); code != websocket.StatusPolicyViolation {
		t.Errorf("a notification: %s %d", got, code)
	}
}

func TestWrongTokensStayOutside(t *testing.T) {
	r := start(t, nil)
	good := r.token(false)
	wrong := []rpcapi.SessionAuthParams{
		{Token: "x"}, {Token: good + "x"}, {Token: good[:42]}, {HostToken: good}, {Token: r.token(true)}, {},
	}
	for _, params := range wrong {
		p := r.connect()
		p.refused(rpcapi.CodeInternal, rpcapi.SessionAuth, params)
		p.refused(rpcapi.CodeAuthRequired, rpcapi.ToolsList, nil)
		if err := <-p.done; err == nil {
			t.Error("the connection was not closed with its reason")
		}
		p.done <- nil
	}
	p := r.connect()
	p.refused(rpcapi.CodeInternal, rpcapi.SessionAuth, wrong[0])
	p.must(rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: good}, nil)
	p.must(rpcapi.ToolsList, nil, nil)
}

func TestGuessesAreBounded(t *testing.T) {
	r := start(t, nil)
	p := r.connect()
	for range 5 {
		p.refused(rpcapi.CodeInternal, rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: "guess"})
	}
	if out, err := p.try(rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: r.token(false)}); err == nil {
		t.Fatalf("after five guesses the right token got %s", out)
	}
}

func TestAuthIsDoneBeforeTheNextFrame(t *testing.T) {
	r := start(t, nil)
	for range 20 {
		p := r.plain()
		p.send(`{"jsonrpc":"2.0","id":1,"method":"session.auth","params":{"token":"` + r.token(false) + `","agent_id":"a"}}`)
		p.send(`{"jsonrpc":"2.0","id":2,"method":"tools.list"}`)
		p.want(`{"jsonrpc":"2.0","id":1,"result":{"ok":true,"auth_enabled":true,"agent_id":"a"}}`)
		p.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[],"count":0}}`)
	}
}

func TestALongFrameTakesAuth(t *testing.T) {
	r := start(t, &daemon.Options{Listen: "127.0.0.1:0", Limits: daemon.Limits{FrameBytes: 1 << 20, Memory: 1 << 20}})
	long := `{"jsonrpc":"2.0","id":2,"method":"tools.list","params":{"x":"` + strings.Repeat("x", 100<<10) + `"}}`
	known := r.plain()
	known.send(`{"jsonrpc":"2.0","id":1,"method":"session.auth","params":{"token":"` + r.token(false) + `"}}`)
	known.want(`{"jsonrpc":"2.0","id":1,"result":{"ok":true,"auth_enabled":true}}`)
	for range 3 { // each of which would hold all memory
		p := r.plain()
		w, err := p.ws.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(long)) // and the message goes on
		if _, code := p.read(); code != websocket.StatusPolicyViolation {
			t.Fatalf("a long frame before session.auth: closed with %d", code)
		}
	}
	known.send(long)
	known.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[],"count":0}}`)
	eager := r.plain()
	eager.send(`{"jsonrpc":"2.0","id":1,"method":"session.auth","params":{"token":"` + r.token(false) + `"}}`)
	eager.send(long)
	eager.want(`{"jsonrpc":"2.0","id":1,"result":{"ok":true,"auth_enabled":true}}`)
	eager.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[],"count":0}}`)
}

func TestAConnectionIsOneAgent(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.must(rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: r.token(false), AgentID: "a"}, nil)
	p.refused(rpcapi.CodeInternal, rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: r.token(false), AgentID: "b"})
	p.refused(rpcapi.CodeInternal, rpcapi.SessionAuth, rpcapi.SessionAuthParams{HostToken: r.token(true)})
	p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, rpcapi.RunsStartParams{AgentID: "b"})
	r.connect().refused(rpcapi.CodeInvalidParams, rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: r.token(false), AgentID: "../b"})
}

func TestTokensAreRemovedAtACleanStop(t *testing.T) {
	dir := t.TempDir()
	d, err := daemon.Open(t.Context(), &daemon.Options{Listen: "127.0.0.1:0", Tokens: dir})
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*token"))
	if len(files) != 2 {
		t.Fatalf("token files: %q", files)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- d.Serve(ctx) }()
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*", "*token")); len(files) != 0 {
		t.Fatalf("left behind: %q", files)
	}
}

func TestNoAuthIsForLoopbackAndWithoutBuiltins(t *testing.T) {
	for _, o := range []daemon.Options{
		{NoAuth: true, Listen: "0.0.0.0:0"},
		{NoAuth: true, Listen: ":0"},
		{NoAuth: true, Listen: "192.0.2.1:0"},
		{NoAuth: true, Listen: "example.com:0"},
		{NoAuth: true, Listen: "127.0.0.1:0", Builtins: []daemon.Builtin{{Name: "drive_cli", Commands: []string{"echo"}}}},
	} {
		if d, err := daemon.Open(t.Context(), &o); err == nil {
			t.Errorf("%+v was opened", o)
			_ = d.Shutdown(t.Context())
		}
	}
}

func TestHandshake(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	for v := rpcapi.MinProtocolVersion; v <= rpcapi.MaxProtocolVersion; v++ {
		for range 2 {
			var out rpcapi.HandshakeResult
			p.must(rpcapi.ServerHandshake, rpcapi.HandshakeParams{ProtocolVersion: v, ClientVersion: "0.51.0"}, &out)
			if out.ProtocolVersion != v || out.ClientProtocolVersion != v || out.ServerVersion == "" {
				t.Errorf("%d: %+v", v, out)
			}
		}
	}
	for _, params := range []string{
		`{}`, `{"protocol_version":0}`, `{"protocol_version":4}`, `{"protocol_version":"3"}`, `{"protocol_version":2.5}`,
		`{"protocol_version":null}`, `{"protocol_version":-1}`, `{"protocol_version":1e300}`,
	} {
		p.refused(rpcapi.CodeVersion, rpcapi.ServerHandshake, json.RawMessage(params))
	}
	var out rpcapi.HandshakeResult
	p.must(rpcapi.ServerHandshake, json.RawMessage(
		`{"protocol_version":3,"required_capabilities":["models.catalog-identity.v1","infer.model-identity.v1"],"optional_capabilities":["x"]}`), &out)
	if got := strings.Join(out.NegotiatedCapabilities, " "); got != "infer.model-identity.v1 models.catalog-identity.v1" {
		t.Errorf("capabilities: %s", got)
	}
	p.refused(rpcapi.CodeCapability, rpcapi.ServerHandshake, json.RawMessage(`{"protocol_version":3,"required_capabilities":["other.v1"]}`))
}
