package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

func TestDialRefuses(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer web.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	check(t, err)
	defer silent.Close()
	for url, want := range map[string]string{
		"http://127.0.0.1:1":       "want a URL like",
		"ws://":                    "want a URL like",
		"":                         "want a URL like",
		"unix:/nonexistent/socket": "no such file",
		"ws://127.0.0.1:1/":        "refused",
		strings.Replace(web.URL, "http", "ws", 1):    "403 Forbidden",
		"ws://" + silent.Addr().String() + "/silent": "deadline exceeded",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if strings.HasSuffix(url, "silent") {
			ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
		}
		_, err := client.Dial(ctx, url, nil)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q in it", url, err, want)
		}
	}
	checkLeaks(t)
}

func TestDialTokens(t *testing.T) {
	f := newFake(t)
	f.token = "right"
	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte("right\n"), 0o600))
	for _, o := range []*client.Options{{Token: "right"}, {TokenFile: file}} {
		dial(t, f, o)
	}
	_, err := client.Dial(soon(t), f.url(), &client.Options{Token: "wrong"})
	is(t, err, client.ErrToken, client.Internal)
	_, err = client.Dial(soon(t), f.url(), &client.Options{AgentID: "a"})
	is(t, err, client.ErrToken)
	_, err = client.Dial(soon(t), f.url(), &client.Options{TokenFile: file + "x"})
	is(t, err, os.ErrNotExist)
}

func TestDialAnotherVersion(t *testing.T) {
	f := newFake(t)
	f.answer = func(_ context.Context, r *jsonrpc.Request) (any, bool, error) {
		return nil, r.Method == rpcapi.ServerHandshake, jsonrpc.Errorf(rpcapi.CodeVersion, "protocol version mismatch")
	}
	_, err := client.Dial(soon(t), f.url(), nil)
	is(t, err, client.Version)
}

func TestErrorsByCode(t *testing.T) {
	f := newFake(t)
	c := dial(t, f, nil)
	err := c.Call(soon(t), "no.such", nil, nil)
	is(t, err, client.MethodNotFound)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Method != "no.such" || errors.Is(err, client.Internal) {
		t.Errorf("got %#v", err)
	}
	f.answer = func(_ context.Context, r *jsonrpc.Request) (any, bool, error) {
		switch r.Method {
		case rpcapi.RunsRecordTurns:
			return rpcapi.RunsRecordTurnsResult{Dropped: "run_terminal"}, true, nil
		case rpcapi.RunsList:
			return "not an object", true, nil
		}
		return nil, false, nil
	}
	run, err := c.Start(soon(t), rpcapi.RunsStartParams{Intent: "x"})
	check(t, err)
	_, err = run.RecordTurns(soon(t), rpcapi.Turn{})
	var dropped *client.DroppedError
	if !errors.As(err, &dropped) || dropped.Reason != "run_terminal" || dropped.RunID != run.ID {
		t.Errorf("got %v", err)
	}
	if _, err := c.Runs(soon(t), rpcapi.RunsListParams{}); err == nil {
		t.Error("a result of another shape is no error")
	}
}

func TestARunHasAName(t *testing.T) {
	f := newFake(t)
	c := dial(t, f, nil)
	for _, res := range []any{nil, rpcapi.RunsStartResult{}, rpcapi.RunsStartResult{RunID: "r"}, rpcapi.RunsStartResult{AgentID: "a"},
		rpcapi.RunsStartResult{RunID: "another", AgentID: "a"}} {
		f.answer = func(_ context.Context, r *jsonrpc.Request) (any, bool, error) {
			return res, r.Method == rpcapi.RunsStart, nil
		}
		if run, err := c.Start(soon(t), rpcapi.RunsStartParams{Intent: "x", IdempotencyKey: "mine"}); err == nil {
			t.Errorf("%+v: got the run %+v", res, run)
		}
	}
}

// blocked makes the fake hold up one call of state.get until its connection ends.
func blocked(f *fake) (began chan struct{}) {
	began = make(chan struct{}, 1)
	f.answer = func(ctx context.Context, r *jsonrpc.Request) (any, bool, error) {
		if r.Method != rpcapi.StateGet {
			return nil, false, nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return nil, true, ctx.Err()
	}
	return began
}

func TestConnectionIsMadeAgain(t *testing.T) {
	f := newFake(t)
	f.token = "first"
	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte("first"), 0o600))
	began := blocked(f)
	c := dial(t, f, &client.Options{TokenFile: file, Tools: []client.Tool{
		client.Func("first", "", func(context.Context, struct{}) (any, error) { return nil, nil }),
	}})
	check(t, c.RegisterTools(soon(t), client.Func("second", "", func(context.Context, struct{}) (any, error) { return nil, nil })))
	check(t, c.RegisterPolicy(soon(t), rpcapi.PolicyRegisterParams{PolicyRule: rpcapi.PolicyRule{Name: "p"}}))
	check(t, c.RegisterPolicy(soon(t), rpcapi.PolicyRegisterParams{SessionID: "gone with its connection"}))
	open, err := c.Start(soon(t), rpcapi.RunsStartParams{Intent: "stays open"})
	check(t, err)
	done, err := c.Start(soon(t), rpcapi.RunsStartParams{Intent: "ends"})
	check(t, err)
	check(t, done.Complete(soon(t), rpcapi.Outcome{Status: "success"}))

	lost := make(chan error, 1)
	go func() {
		_, err := c.State("").Get(soon(t), "k")
		lost <- err
	}()
	<-began
	f.stop() // the daemon is killed …
	is(t, <-lost, client.ErrLost)
	var again []string
	f.mu.Lock()
	f.log, f.token = nil, "second" // … and started again, with another token
	f.mu.Unlock()
	f.answer = func(_ context.Context, r *jsonrpc.Request) (any, bool, error) {
		again = append(again, r.Method+string(r.Params))
		return nil, false, nil
	}
	check(t, os.WriteFile(file, []byte("second"), 0o600))
	f.listen()
	ping(t, c)
	want := []string{rpcapi.SessionAuth, rpcapi.ServerHandshake, rpcapi.ToolsRegister, rpcapi.PolicyRegister, rpcapi.RunsStart, rpcapi.StateSet}
	if got := f.methods(); got != strings.Join(want, " ") {
		t.Errorf("got calls %s, want %s", got, want)
	}
	for i, part := range []string{"second", "", `"second"`, `"p"`, `"idempotency_key":"` + open.ID + `"`} {
		if !strings.Contains(again[i], part) {
			t.Errorf("got %s, want %s in it", again[i], part)
		}
	}
}

func TestPatience(t *testing.T) {
	f := newFake(t)
	short := dial(t, f, &client.Options{Patience: 50 * time.Millisecond})
	none := dial(t, f, &client.Options{Patience: -1})
	long := dial(t, f, nil)
	f.stop()
	var err error
	for err = client.ErrLost; errors.Is(err, client.ErrLost) && !strings.Contains(err.Error(), "within 50ms"); {
		err = short.Call(soon(t), rpcapi.ToolsList, nil, nil) // that the connection is lost is not known at once
	}
	if !strings.Contains(err.Error(), "within 50ms") {
		t.Errorf("got %v", err)
	}
	for err = nil; err == nil; err = none.Call(soon(t), rpcapi.ToolsList, nil, nil) {
	}
	is(t, err, client.ErrLost)
	for _, err := range none.Subscribe(soon(t), "r", 0) {
		is(t, err, client.ErrLost)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	is(t, long.Call(ctx, rpcapi.ToolsList, nil, nil), context.DeadlineExceeded)

	waits := make(chan error, 1)
	go func() { waits <- long.Call(soon(t), rpcapi.ToolsList, nil, nil) }()
	check(t, long.Close())
	is(t, <-waits, client.ErrClosed)
	is(t, long.Call(soon(t), rpcapi.ToolsList, nil, nil), client.ErrClosed)
	check(t, long.Close())
}

// A token that was given as it is will not become another: the client gives up, and says why.
func TestTokenThatIsNoLongerTaken(t *testing.T) {
	f := newFake(t)
	f.token = "t"
	c := dial(t, f, &client.Options{Token: "t"})
	f.mu.Lock()
	f.token = "u"
	f.mu.Unlock()
	f.cut()
	var err error
	for ctx := soon(t); ctx.Err() == nil && !errors.Is(err, client.ErrToken); { // first the connection goes, in whatever way
		err = c.Call(ctx, rpcapi.StateSet, nil, nil)
	}
	is(t, err, client.ErrToken)
}

func TestCloseWhileAToolRuns(t *testing.T) {
	f := newFake(t)
	began, ended := make(chan struct{}), make(chan struct{})
	c := dial(t, f, &client.Options{Tools: []client.Tool{{Name: "t", Run: func(ctx context.Context, _ *client.ToolCall) (any, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, nil
	}}}})
	go func() { _, _ = f.execute(soon(t), "t", `{}`, nil) }()
	<-began
	check(t, c.Close())
	select {
	case <-ended:
	default:
		t.Error("Close returned while a tool ran")
	}
}

// upgraded serves one WebSocket with do.
func upgraded(t *testing.T, do func(ctx context.Context, ws *websocket.Conn)) (url string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		if r.Header.Get("Sec-WebSocket-Extensions") != "" {
			t.Error("the client offers compression")
		}
		do(r.Context(), ws)
	}))
	t.Cleanup(func() {
		web.Close()
		checkLeaks(t)
	})
	return strings.Replace(web.URL, "http", "ws", 1)
}

func TestWebSocket(t *testing.T) {
	handshake := func(ctx context.Context, ws *websocket.Conn) {
		_, b, err := ws.Read(ctx)
		if err != nil || !strings.Contains(string(b), `"id":"c-1"`) {
			t.Errorf("got %s, %v", b, err)
		}
		_ = ws.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":"c-1","result":{"protocol_version":3,"server_version":"v"}}`))
	}
	for name, then := range map[string]func(ctx context.Context, ws *websocket.Conn){
		"a binary frame": func(ctx context.Context, ws *websocket.Conn) {
			_ = ws.Write(ctx, websocket.MessageBinary, []byte("{}"))
		},
		"a frame over the limit": func(ctx context.Context, ws *websocket.Conn) {
			_ = ws.Write(ctx, websocket.MessageText, make([]byte, 2000))
		},
		"closed in good order": func(_ context.Context, ws *websocket.Conn) { _ = ws.Close(websocket.StatusNormalClosure, "") },
		"closed with a reason": func(_ context.Context, ws *websocket.Conn) {
			_ = ws.Close(websocket.StatusPolicyViolation, "auth required")
		},
		"the connection just ends": func(_ context.Context, ws *websocket.Conn) { _ = ws.CloseNow() },
	} {
		t.Run(name, func(t *testing.T) {
			url := upgraded(t, func(ctx context.Context, ws *websocket.Conn) {
				handshake(ctx, ws)
				_, _, _ = ws.Read(ctx)
				then(ctx, ws)
				_, _, _ = ws.Read(ctx)
			})
			c, err := client.Dial(soon(t), url, &client.Options{MaxFrame: 1000, Patience: -1})
			check(t, err)
			defer c.Close()
			if c.Server() != "v" {
				t.Errorf("got server %q", c.Server())
			}
			is(t, c.Call(soon(t), rpcapi.ToolsList, nil, nil), client.ErrLost)
		})
	}
}
