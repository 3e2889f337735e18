package jsonrpc

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A far is the other end of a stream, spoken by hand.
type far struct {
	t testing.TB
	s Stream
}

func (f far) send(frame string) {
	f.t.Helper()
	if err := f.s.Write([]byte(frame), false); err != nil {
		f.t.Errorf("send %.80s: %v", frame, err)
	}
}

func (f far) recv() string {
	f.t.Helper()
	b, _, err := f.s.Read()
	if err != nil {
		f.t.Errorf("receive: %v", err)
	}
	return string(b)
}

// reply answers the request that comes next.
func (f far) answer(result string) {
	f.t.Helper()
	var r struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(f.recv()), &r); err != nil {
		f.t.Error(err)
	}
	f.send(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + `}`)
}

// peer serves a Conn on one end of a pipe until the test is over, and returns it with the other end. Whatever it started must
// have ended by then.
func peer(t testing.TB, o *Options) (*Conn, far) {
	t.Helper()
	near, other := Pipe()
	c := New(near, o)
	done := make(chan error, 1)
	go func() { done <- c.Serve(context.Background()) }()
	t.Cleanup(func() {
		_ = other.Close(CloseNormal, "")
		<-done
	})
	return c, far{t, other}
}

// handler makes a handler of one function a method.
func handler(methods map[string]Handler) Handler {
	return func(ctx context.Context, r *Request) (any, error) {
		if h := methods[r.Method]; h != nil {
			return h(ctx, r)
		}
		return nil, Errorf(CodeMethodNotFound, "unknown method: %s", r.Method)
	}
}

func echo(_ context.Context, r *Request) (any, error) { return r.Params, nil }

// noLeak fails the test when goroutines of this package are left.
func noLeak(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for range 200 {
			if left = running(); left == "" {
				return
			}
			time.Sleep(5 * time.Millisecond) // a goroutine that has nothing left to do may not have ended
		}
		t.Errorf("goroutines are left:\n%s", left)
	})
}

func running() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var left []string
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(g, "internal/jsonrpc.(*") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

// Stats is a Conn at one moment.
type Stats struct {
	Running, Waiting int // requests in service, and in line
	Calls            int // of ours that are unanswered
}

// Stats returns what c is at now.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{c.running + c.parked, len(c.waiting), len(c.calls)}
}
