package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// rig is a daemon of a test, on a real socket.
type rig struct {
	*daemon.Daemon
	t      testing.TB
	tokens string
}

// start opens a daemon and serves; the end of the test stops it and waits.
func start(t testing.TB, o *daemon.Options) *rig {
	t.Helper()
	options := daemon.Options{}
	if o != nil {
		options = *o
	}
	if options.Listen == "" && options.Socket == "" {
		options.Listen = "127.0.0.1:0"
	}
	r := &rig{t: t, tokens: t.TempDir()}
	options.Tokens = r.tokens
	if options.Logger == nil && testing.Verbose() {
		if _, bench := t.(*testing.B); !bench {
			options.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	}
	d, err := daemon.Open(t.Context(), &options)
	if err != nil {
		t.Fatal(err)
	}
	r.Daemon = d
	served := make(chan error, 1)
	go func() { served <- d.Serve(context.Background()) }()
	t.Cleanup(func() {
		if err := d.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return r
}

// token reads one from its file.
func (r *rig) token(host bool) string {
	r.t.Helper()
	tok, err := token.Read(r.tokens, r.URL(), host)
	if err != nil {
		r.t.Fatal(err)
	}
	return tok
}

// peer is a client: our own peer, without package client.
type peer struct {
	*jsonrpc.Conn
	t    testing.TB
	done chan error // what Serve returned

	mu    sync.Mutex
	tools map[string]func(context.Context, *rpcapi.ToolsExecuteParams) (any, error)
	news  chan jsonrpc.Request // notifications
}

// connect opens a connection without session.auth.
func (r *rig) connect() *peer {
	r.t.Helper()
	s, err := websock.Dial(r.t.Context(), r.URL(), &websock.Options{Limit: 64 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	p := &peer{t: r.t, done: make(chan error, 1), tools: map[string]func(context.Context, *rpcapi.ToolsExecuteParams) (any, error){},
		news: make(chan jsonrpc.Request, 4096)}
	p.Conn = jsonrpc.New(s, &jsonrpc.Options{Handler: p.handle, IDPrefix: "c-", Limits: jsonrpc.Limits{Concurrent: 1000, Frame: 64 << 20},
		Inline: func(m string) bool {
			return m == rpcapi.RunsTraceEvent || m == rpcapi.RunsTraceLost || m == rpcapi.ToolsCancel
		}})
	go func() { p.done <- p.Serve(context.Background()) }()
	r.t.Cleanup(p.close)
	return p
}

// as opens a connection that is bound to an agent; "" is bound to none.
func (r *rig) as(agent string) *peer {
	r.t.Helper()
	p := r.connect()
	var out rpcapi.SessionAuthResult
	p.must(rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: r.token(false), AgentID: agent}, &out)
	if !out.OK || !out.AuthEnabled || out.AgentID != agent {
		r.t.Fatalf("session.auth: %+v", out)
	}
	return p
}

func (r *rig) host() *peer {
	r.t.Helper()
	p := r.connect()
	var out rpcapi.SessionAuthResult
	p.must(rpcapi.SessionAuth, rpcapi.SessionAuthParams{HostToken: r.token(true)}, &out)
	if out.Role != rpcapi.RoleHost {
		r.t.Fatalf("session.auth: %+v", out)
	}
	return p
}

// close goes away and waits.
func (p *peer) close() {
	p.Close(jsonrpc.CloseNormal, "")
	<-p.done
	p.done <- nil
}

func (p *peer) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.ID == nil {
		select {
		case p.news <- *r:
		default:
		}
		return nil, nil
	}
	if r.Method != rpcapi.ToolsExecute {
		return nil, jsonrpc.Errorf(rpcapi.CodeMethodNotFound, "unknown")
	}
	var x rpcapi.ToolsExecuteParams
	if err := json.Unmarshal(r.Params, &x); err != nil {
		return nil, err
	}
	if string(r.ID) != `"`+x.RequestID+`"` {
		p.t.Errorf("tools.execute has id %s and request_id %s", r.ID, x.RequestID)
	}
	p.mu.Lock()
	f := p.tools[x.Tool]
	p.mu.Unlock()
	if f == nil {
		return nil, errors.New("no such tool here")
	}
	return f(ctx, &x)
}

// serve registers a tool.
func (p *peer) serve(name string, f func(context.Context, *rpcapi.ToolsExecuteParams) (any, error)) {
	p.t.Helper()
	p.mu.Lock()
	p.tools[name] = f
	p.mu.Unlock()
	var n int
	p.must(rpcapi.ToolsRegister, []rpcapi.Tool{{Name: name}}, &n)
	if n != 1 {
		p.t.Fatalf("tools.register: %d", n)
	}
}

// answers serves a tool that always says the same.
func (p *peer) answers(name, output string) {
	p.serve(name, func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) { return json.RawMessage(output), nil })
}

func (p *peer) try(method string, params any) (json.RawMessage, error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out json.RawMessage
	err := p.Call(ctx, p.NewID(), method, params, &out)
	return out, err
}

func (p *peer) must(method string, params, result any) {
	p.t.Helper()
	out, err := p.try(method, params)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	if result != nil {
		if err := json.Unmarshal(out, result); err != nil {
			p.t.Fatalf("%s: %s: %v", method, out, err)
		}
	}
}

// refused expects an error of that code.
func (p *peer) refused(code int, method string, params any) *jsonrpc.Error {
	p.t.Helper()
	out, err := p.try(method, params)
	var said *jsonrpc.Error
	if !errors.As(err, &said) || said.Code != code {
		p.t.Fatalf("%s %v: want error %d, got %s, %v", method, params, code, out, err)
	}
	return said
}

func (p *peer) startRun(params rpcapi.RunsStartParams) rpcapi.RunsStartResult {
	p.t.Helper()
	var out rpcapi.RunsStartResult
	p.must(rpcapi.RunsStart, params, &out)
	return out
}

// call submits one tool call.
func (p *peer) call(tool, parameters string) rpcapi.ProposalSubmitResult {
	p.t.Helper()
	return p.submit(`{"proposal":{"actions":[{"id":"a1","type":"tool_call","tool":"` + tool + `","parameters":` + parameters + `}]}}`)
}

func (p *peer) submit(params string) rpcapi.ProposalSubmitResult {
	p.t.Helper()
	var out rpcapi.ProposalSubmitResult
	p.must(rpcapi.ProposalSubmit, json.RawMessage(params), &out)
	return out
}

func (p *peer) trace(run string) rpcapi.RunsGetTraceResult {
	p.t.Helper()
	var out rpcapi.RunsGetTraceResult
	p.must(rpcapi.RunsGetTrace, rpcapi.RunsGetTraceParams{RunID: run}, &out)
	return out
}

// next waits for a notification.
func (p *peer) next() jsonrpc.Request {
	p.t.Helper()
	select {
	case n := <-p.news:
		return n
	case <-time.After(20 * time.Second):
		p.t.Fatal("no notification came")
	}
	panic("unreachable")
}
