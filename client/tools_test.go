package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A hundred calls come at once; each waits for the one after it, so that their replies go in the reverse order, and each asks
// the daemon for something meanwhile.
func TestToolsAtOnceRepliesOutOfOrder(t *testing.T) {
	f := newFake(t)
	const n = 100
	var done [n + 1]chan struct{}
	for i := range done {
		done[i] = make(chan struct{})
	}
	close(done[n])
	var c *client.Client
	type params struct{ N int }
	c = dial(t, f, &client.Options{Tools: []client.Tool{
		client.Func("wait", "waits", func(ctx context.Context, p params) (any, error) {
			<-done[p.N+1]
			defer close(done[p.N])
			return p.N, c.State("").Set(ctx, "k", p.N)
		}),
	}})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			output, err := f.execute(soon(t), "wait", fmt.Sprintf(`{"N":%d}`, i), nil)
			if err != nil || string(output) != fmt.Sprint(i) {
				t.Errorf("call %d: got %s, %v", i, output, err)
			}
		})
	}
	wg.Wait()
}

func TestToolIsCancelled(t *testing.T) {
	f := newFake(t)
	began, cause := make(chan struct{}), make(chan error, 1)
	dial(t, f, &client.Options{Tools: []client.Tool{{Name: "slow", Run: func(ctx context.Context, _ *client.ToolCall) (any, error) {
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	}}}})
	go func() {
		<-began
		_ = f.peer().Notify(rpcapi.ToolsCancel, rpcapi.ToolsCancelParams{RequestID: "cb-1", Reason: "the deadline"})
	}()
	if _, err := f.execute(soon(t), "slow", `{}`, nil); err == nil {
		t.Error("a cancelled call has no error")
	}
	var cancelled *client.CancelledError
	if err := <-cause; !errors.As(err, &cancelled) || cancelled.Reason != "the deadline" {
		t.Errorf("got cause %v", err)
	}
}

// A cancellation that follows its call at once may come to be handled before the call's goroutine runs.
func TestToolIsCancelledBeforeItBegins(t *testing.T) {
	f := newFake(t)
	dial(t, f, &client.Options{Tools: []client.Tool{{Name: "slow", Run: func(ctx context.Context, _ *client.ToolCall) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}})
	peer := f.peer()
	for range 200 {
		id := peer.NewID()
		ended := make(chan error, 1)
		go func() {
			ended <- peer.Call(soon(t), id, rpcapi.ToolsExecute, rpcapi.ToolsExecuteParams{Tool: "slow", RequestID: id}, nil)
		}()
		check(t, peer.Notify(rpcapi.ToolsCancel, rpcapi.ToolsCancelParams{RequestID: id})) // perhaps before the call itself
		if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestToolFailures(t *testing.T) {
	f := newFake(t)
	type params struct{ N int }
	dial(t, f, &client.Options{Tools: []client.Tool{
		client.Func("fails", "", func(context.Context, params) (any, error) { return nil, errors.New("disk full") }),
		client.Func("panics", "", func(context.Context, params) (any, error) { panic("at the disco") }),
		client.Func("strange", "", func(context.Context, params) (any, error) { return func() {}, nil }),
		client.Func("late", "", func(ctx context.Context, _ params) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
	}})
	ms := int64(1)
	for _, c := range []struct{ tool, parameters, want string }{
		{"fails", `{}`, "disk full"},
		{"panics", `{}`, "at the disco"},
		{"strange", `{}`, "unsupported type"},
		{"late", `{}`, "deadline"},
		{"missing", `{}`, `"missing" is not one`},
		{"fails", `{"N":"one"}`, "parameters of fails"},
	} {
		_, err := f.execute(soon(t), c.tool, c.parameters, func(p *rpcapi.ToolsExecuteParams) {
			if c.tool == "late" {
				p.TimeoutMS = &ms
			}
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q in it", c.tool, err, c.want)
		}
	}
}

func TestToolCallHasWhatTheDaemonSaid(t *testing.T) {
	f := newFake(t)
	calls := make(chan client.ToolCall, 1)
	dial(t, f, &client.Options{Tools: []client.Tool{{Name: "t", Run: func(_ context.Context, call *client.ToolCall) (any, error) {
		calls <- *call
		return json.RawMessage(`{"a":9007199254740993}`), nil
	}}}})
	ms := int64(1500)
	output, err := f.execute(soon(t), "t", `{"x":[1]}`, func(p *rpcapi.ToolsExecuteParams) {
		p.TimeoutMS, p.SessionID, p.Attempt = &ms, "s", 3
	})
	check(t, err)
	if string(output) != `{"a":9007199254740993}` {
		t.Errorf("got output %s", output)
	}
	got := <-calls
	if string(got.Parameters) != `{"x":[1]}` || got.Tool != "t" || got.ActionID != "a" || got.SessionID != "s" ||
		got.Attempt != 3 || got.Timeout.Milliseconds() != 1500 || got.RequestID != "cb-1" {
		t.Errorf("got %+v", got)
	}
}

func TestToolsNeedANameAndAFunction(t *testing.T) {
	f := newFake(t)
	c := dial(t, f, nil)
	for _, tool := range []client.Tool{{Name: "x"}, client.Func("", "", func(context.Context, struct{}) (any, error) { return nil, nil })} {
		if err := c.RegisterTools(soon(t), tool); err == nil {
			t.Errorf("%+v is registered", tool)
		}
	}
}
