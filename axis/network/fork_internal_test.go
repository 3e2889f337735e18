package network

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A countedContext counts who waits for its end.
type countedContext struct {
	context.Context
	waiting *atomic.Int64
}

// Value hides what it is made of, whose end would be waited for in its place.
func (countedContext) Value(any) any { return nil }

// AfterFunc is what package context asks.
func (c countedContext) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	return func() bool { c.waiting.Add(-1); return true }
}

// TestAskedIsReleased: a request of a conversation waits for the end of nobody once its answer is closed, or did not come.
func TestAskedIsReleased(t *testing.T) {
	t.Parallel()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "answer") }))
	defer far.Close()
	up, err := newUpstream(&Config{Upstreams: map[string]string{"mcp.example.com": far.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer up.close()
	alive, end := context.WithCancel(t.Context())
	defer end()
	ctx := countedContext{alive, new(atomic.Int64)}
	s := &forking{up: up, ctx: ctx}
	res, err := s.asks(ctx, &exchange.Request{Method: http.MethodGet, URL: "http://mcp.example.com/mcp", Header: http.Header{}})
	if err != nil {
		t.Fatal(err)
	}
	if n := ctx.waiting.Load(); n != 2 {
		t.Errorf("%d wait while it is read, want the caller's and the Server's", n)
	}
	if b, err := io.ReadAll(res.Body); string(b) != "answer" || err != nil {
		t.Errorf("got %q: %v", b, err)
	}
	res.Body.Close()
	far.Close()
	if _, err := s.asks(ctx, &exchange.Request{Method: http.MethodGet, URL: "http://mcp.example.com/mcp", Header: http.Header{}}); err == nil {
		t.Error("an answer of nobody")
	}
	if n := ctx.waiting.Load(); n != 0 {
		t.Errorf("%d wait still", n)
	}
}
