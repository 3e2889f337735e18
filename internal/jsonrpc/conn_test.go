package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepliesOutOfOrder(t *testing.T) {
	noLeak(t)
	release := map[string]chan struct{}{"1": make(chan struct{}), "2": make(chan struct{})}
	_, f := peer(t, &Options{Handler: func(_ context.Context, r *Request) (any, error) {
		<-release[string(r.ID)]
		return string(r.ID), nil
	}})
	f.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	f.send(`{"jsonrpc":"2.0","id":2,"method":"wait"}`)
	close(release["2"])
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":2,"result":"2"}` {
		t.Error(got)
	}
	close(release["1"])
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":1,"result":"1"}` {
		t.Error(got)
	}
}

// TestCallsBackInOneRequest answers a request whose handler calls back many times at once, in reverse order.
func TestCallsBackInOneRequest(t *testing.T) {
	noLeak(t)
	const n = 20
	_, f := peer(t, &Options{Handler: func(ctx context.Context, r *Request) (any, error) {
		var wg sync.WaitGroup
		var sum atomic.Int64
		for i := range n {
			wg.Go(func() {
				id := r.Conn.NewID()
				var raw json.RawMessage
				if err := r.Conn.Call(ctx, id, "tools.execute", map[string]any{"request_id": id, "n": i}, &raw); err != nil {
					t.Error(err)
				}
				var got int64
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Error(err)
				}
				sum.Add(got)
			})
		}
		wg.Wait()
		return sum.Load(), nil
	}})
	f.send(`{"jsonrpc":"2.0","id":"p","method":"proposal.submit"}`)
	var calls []string
	for range n {
		var call struct {
			ID     string
			Params struct {
				RequestID string `json:"request_id"`
				N         int
			}
		}
		if err := json.Unmarshal([]byte(f.recv()), &call); err != nil || call.ID != call.Params.RequestID || !strings.HasPrefix(call.ID, "cb-") {
			t.Errorf("%+v, %v", call, err)
		}
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%d}`, call.ID, call.Params.N))
	}
	slices.Reverse(calls)
	for _, c := range calls {
		f.send(c)
	}
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":"p","result":190}` {
		t.Error(got)
	}
}

func TestAnErrorOfThePeer(t *testing.T) {
	tests := []struct {
		name, failure string
		want          Error
	}{
		{"whole", `{"code":-32000,"message":"tool \"x\" failed","data":{"a":[1]}}`, Error{-32000, `tool "x" failed`, json.RawMessage(`{"a":[1]}`)}},
		{"no code", `{"message":"x"}`, Error{Code: CodeInternal, Message: "x"}},
		{"the code is a string", `{"code":"E","message":"x"}`, Error{Code: CodeInternal, Message: "x"}},
		{"the code is too large", `{"code":1e99,"message":"x"}`, Error{Code: CodeInternal, Message: "x"}},
		{"the message is a number", `{"code":1,"message":2}`, Error{Code: 1}},
		{"a string", `"broken"`, Error{Code: CodeInternal, Message: `"broken"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f := peer(t, nil)
			go func() {
				f.recv()
				f.send(`{"jsonrpc":"2.0","id":"cb-1","error":` + tt.failure + `}`)
			}()
			err := c.Call(t.Context(), c.NewID(), "x", nil, nil)
			var got *Error
			if !errors.As(err, &got) || got.Code != tt.want.Code || got.Message != tt.want.Message || string(got.Data) != string(tt.want.Data) {
				t.Errorf("got %#v, want %#v", err, tt.want)
			}
		})
	}
}

func TestAnIDWithEscapes(t *testing.T) {
	c, f := peer(t, nil)
	go func() {
		f.recv()
		f.send(`{"jsonrpc":"2.0","id":"cb\u002d1","result":5}`)
	}()
	var got json.RawMessage
	if err := c.Call(t.Context(), c.NewID(), "x", nil, &got); err != nil || string(got) != "5" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestAnErrorBesideANullResult is what libraries for version 1 send: the call does not wait for another reply.
func TestAnErrorBesideANullResult(t *testing.T) {
	noLeak(t)
	for _, rest := range []string{`"result":null,"error":{"code":7,"message":"no"}`, `"error":{"code":7,"message":"no"},"result":null`} {
		c, f := peer(t, nil)
		go func() {
			f.recv()
			f.send(`{"jsonrpc":"2.0","id":"cb-1",` + rest + `}`)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var said *Error
		if err := c.Call(ctx, c.NewID(), "tool", nil, nil); !errors.As(err, &said) || said.Code != 7 || said.Message != "no" {
			t.Errorf("%s: got %v", rest, err)
		}
	}
}

// TestACallIsCancelled drops the reply that comes too late, and goes on.
func TestACallIsCancelled(t *testing.T) {
	noLeak(t)
	stray := make(chan Refusal, 1)
	c, f := peer(t, &Options{Meter: Meter{Refused: func(why Refusal) { stray <- why }}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		f.recv()
		cancel()
	}()
	if err := c.Call(ctx, c.NewID(), "slow", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.send(`{"jsonrpc":"2.0","id":"cb-1","result":1}`)
	if why := <-stray; why != RefusedStray {
		t.Errorf("got %s", why)
	}
	go f.answer("2")
	var got json.RawMessage
	if err := c.Call(t.Context(), c.NewID(), "next", nil, &got); err != nil || string(got) != "2" {
		t.Errorf("%s, %v", got, err)
	}
	if s := c.Stats(); s.Calls != 0 {
		t.Errorf("%d calls are left", s.Calls)
	}
}

// logged is a log that is read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAPanicIsAnswered(t *testing.T) {
	noLeak(t)
	var log logged
	_, f := peer(t, &Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Handler: handler(map[string]Handler{
			"panic": func(context.Context, *Request) (any, error) { panic("secret") },
			"after": func(_ context.Context, r *Request) (any, error) { r.After = func() { panic("later") }; return 1, nil },
			"echo":  echo,
		}),
	})
	f.send(`{"jsonrpc":"2.0","id":0,"method":"after"}`)
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":0,"result":1}` {
		t.Error(got)
	}
	f.send(`{"jsonrpc":"2.0","id":1,"method":"panic"}`)
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}` {
		t.Error(got)
	}
	f.send(`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	f.recv()
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "TestAPanicIsAnswered") {
		t.Errorf("the log has no trace of it: %s", log.String())
	}
}

func TestAResultThatCannotBeEncoded(t *testing.T) {
	_, f := peer(t, &Options{Handler: func(context.Context, *Request) (any, error) { return func() {}, nil }})
	f.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}` {
		t.Error(got)
	}
}

// TestInlineComesFirst lets a client send its token and its first request at once.
func TestInlineComesFirst(t *testing.T) {
	authed := false // no lock: the race detector sees whether it was handled inline
	_, f := peer(t, &Options{
		Inline: func(method string) bool { return method == "session.auth" },
		Handler: func(_ context.Context, r *Request) (any, error) {
			if r.Method == "session.auth" {
				authed = true
			}
			return authed, nil
		},
	})
	go func() {
		for i := range 100 {
			f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s"}`, i, []string{"session.auth", "next"}[min(i, 1)]))
		}
	}()
	for range 100 {
		if got := f.recv(); !strings.HasSuffix(got, `"result":true}`) {
			t.Error(got)
		}
	}
}

func TestAFatalAnswerIsTheLast(t *testing.T) {
	noLeak(t)
	near, other := Pipe()
	c := New(near, &Options{Inline: func(string) bool { return true }, Handler: func(context.Context, *Request) (any, error) {
		return nil, &Fatal{Errorf(CodeAuth, "auth required"), ClosePolicy, "auth required"}
	}})
	done := make(chan error, 1)
	go func() { done <- c.Serve(t.Context()) }()
	f := far{t, other}
	f.send(`{"jsonrpc":"2.0","id":1,"method":"tools.list"}`)
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"auth required"}}` {
		t.Error(got)
	}
	_, _, err := other.Read()
	var closed *CloseError
	if !errors.As(err, &closed) || closed.Code != ClosePolicy {
		t.Errorf("got %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheEndFailsWhatWaits(t *testing.T) {
	noLeak(t)
	near, other := Pipe()
	handled := make(chan error, 1)
	c := New(near, &Options{Handler: func(ctx context.Context, _ *Request) (any, error) {
		<-ctx.Done()
		handled <- ctx.Err()
		return nil, nil
	}})
	done := make(chan error, 1)
	go func() { done <- c.Serve(context.Background()) }()
	f := far{t, other}
	f.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	go func() {
		f.recv()
		_ = other.Close(ClosePolicy, "enough")
	}()
	if err := c.Call(t.Context(), c.NewID(), "x", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("call: %v", err)
	}
	var closed *CloseError
	if err := <-done; !errors.As(err, &closed) || closed.Code != ClosePolicy {
		t.Errorf("serve: %v", err)
	}
	<-handled
	if err := c.Call(t.Context(), c.NewID(), "x", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("call after the end: %v", err)
	}
	if err := c.Notify("x", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("notify after the end: %v", err)
	}
}

// TestAPeerThatOnlyReads gets its answer although it has closed its half.
func TestAPeerThatOnlyReads(t *testing.T) {
	noLeak(t)
	in, out := io.Pipe()
	answers, w := io.Pipe()
	c := New(NewLines(struct {
		io.Reader
		io.WriteCloser
	}{in, w}, 0, nil), &Options{Handler: echo})
	done := make(chan error, 1)
	go func() { done <- c.Serve(t.Context()) }()
	go func() {
		_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":1,"method":"echo"}`+"\n")
		_ = out.Close()
	}()
	b, err := io.ReadAll(answers)
	if err != nil || string(b) != `{"jsonrpc":"2.0","id":1,"result":null}`+"\n" {
		t.Errorf("%s, %v", b, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestALineThatIsTooLong is answered before the end.
func TestALineThatIsTooLong(t *testing.T) {
	noLeak(t)
	answers, w := io.Pipe()
	in := strings.NewReader(strings.Repeat("x", 64<<20))
	c := New(NewLines(struct {
		io.Reader
		io.WriteCloser
	}{in, w}, 1<<20, nil), nil)
	done := make(chan error, 1)
	go func() { done <- c.Serve(t.Context()) }()
	b, err := io.ReadAll(answers)
	if err != nil || !strings.HasPrefix(string(b), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
		t.Errorf("%s, %v", b, err)
	}
	if err := <-done; !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	if read := 64<<20 - in.Len(); read > 3<<20 {
		t.Errorf("%d bytes of it were read", read)
	}
}

func TestShutdown(t *testing.T) {
	noLeak(t)
	near, other := Pipe()
	begun, release := make(chan struct{}), make(chan struct{})
	c := New(near, &Options{Handler: func(context.Context, *Request) (any, error) {
		close(begun)
		<-release
		return "done", nil
	}})
	served, down := make(chan error, 1), make(chan error, 1)
	go func() { served <- c.Serve(t.Context()) }()
	f := far{t, other}
	f.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	<-begun
	c.mu.Lock()
	c.drain() // what Shutdown, in another goroutine, may not have come to yet
	c.mu.Unlock()
	go func() { down <- c.Shutdown(t.Context()) }()
	f.send(`{"jsonrpc":"2.0","id":2,"method":"x"}`)
	if got := f.recv(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,`) {
		t.Error(got)
	}
	close(release)
	if got := f.recv(); got != `{"jsonrpc":"2.0","id":1,"result":"done"}` {
		t.Error(got)
	}
	_, _, err := other.Read()
	var closed *CloseError
	if !errors.As(err, &closed) || closed.Code != CloseGoingAway {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(<-down, <-served); err != nil {
		t.Error(err)
	}
}

// TestShutdownHasADeadline does not wait for a handler that does not end, but for its deadline.
func TestShutdownHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, other := Pipe()
		c := New(near, &Options{Handler: func(ctx context.Context, _ *Request) (any, error) { <-ctx.Done(); return nil, ctx.Err() }})
		served := make(chan error, 1)
		go func() { served <- c.Serve(context.Background()) }()
		far{t, other}.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		synctest.Wait() // it has begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	noLeak(t)
	near, other := Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := New(near, nil)
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_, _, err := other.Read()
	var closed *CloseError
	if !errors.As(err, &closed) || closed.Code != CloseGoingAway {
		t.Errorf("got %v", err)
	}
}
