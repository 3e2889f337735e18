package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A link is one connection: a conversation and what belongs to it alone. Its goroutine ends with the conversation; close waits
// for it.
type link struct {
	c      *Client
	conn   *jsonrpc.Conn
	over   chan struct{} // closed when nothing of the conversation runs any more
	err    error         // why it ended, nil for good order; to be read when over is closed
	server string        // the version of the daemon, set before anybody else has the link
	calls  calls

	intents intents
	turn    chan struct{} // holds one token: whoever has it subscribes or unsubscribes

	mu      sync.Mutex
	watches map[string][]*watch // by run
}

// maxTools bounds the tools that run at once for one connection. The daemon bounds what it asks of a client below that; what is
// above it would be refused, and not wait, for a tool that waits could be the one that others wait for.
const maxTools = 1 << 14

// failed is the code of a tool's own failure.
const failed = -32000

// close ends the conversation and waits until nothing of it runs.
func (l *link) close() {
	l.conn.Close(jsonrpc.CloseNormal, "")
	<-l.over
}

func (l *link) dead() bool {
	select {
	case <-l.over:
		return true
	default:
		return l.conn.Context().Err() != nil
	}
}

// cause is why the conversation ended, once it has.
func (l *link) cause() error {
	if l.err == nil {
		return errors.New("the daemon ended it")
	}
	return l.err
}

// call calls a method over this connection. What it says is in the comment of the package.
func (l *link) call(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	err := l.conn.Call(ctx, l.conn.NewID(), method, params, &raw)
	refused := (*jsonrpc.Error)(nil)
	switch {
	case errors.As(err, &refused):
		return &Error{Method: method, Code: Code(refused.Code), Message: refused.Message, Data: refused.Data}
	case errors.Is(err, jsonrpc.ErrClosed):
		<-l.conn.Context().Done() // so that the next call does not take this connection
		return fmt.Errorf("%s: %w", method, ErrLost)
	case err != nil:
		return fmt.Errorf("%s: %w", method, err)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("%s: the daemon's result is not of the protocol's shape: %w", method, err)
	}
	return nil
}

// handle answers the daemon. All but tools.execute is handled while the next frame waits, so that it keeps its order.
func (l *link) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case rpcapi.ToolsExecute:
		return l.execute(ctx, r.Params)
	case rpcapi.ToolsCancel:
		var p rpcapi.ToolsCancelParams
		if err := json.Unmarshal(r.Params, &p); err == nil {
			l.calls.cancel(p.RequestID, p.Reason)
		}
	case rpcapi.RunsTraceEvent:
		var p rpcapi.RunsTraceEventParams
		if err := json.Unmarshal(r.Params, &p); err == nil {
			l.each(p.RunID, func(w *watch) { w.put(p.Record) })
		}
	case rpcapi.RunsTraceLost:
		var p rpcapi.RunsTraceLostParams
		if err := json.Unmarshal(r.Params, &p); err == nil {
			l.each(p.RunID, (*watch).lose)
		}
	case rpcapi.SupervisionIntent:
		var in rpcapi.Intent
		if err := json.Unmarshal(r.Params, &in); err == nil {
			l.intents.put(in)
		}
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "unknown method: %s", r.Method)
	}
	return nil, nil
}

func (l *link) execute(ctx context.Context, params json.RawMessage) (any, error) {
	var p rpcapi.ToolsExecuteParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %v", err)
	}
	ctx, end := l.calls.begin(ctx, p.RequestID)
	defer end()
	output, err := l.c.tools.run(ctx, &p, l.c.log)
	if err != nil {
		return nil, jsonrpc.Errorf(failed, "%v", err)
	}
	b, err := json.Marshal(output)
	if err != nil {
		return nil, jsonrpc.Errorf(failed, "output of %s: %v", p.Tool, err)
	}
	return json.RawMessage(b), nil
}

// unsubscribeTimeout is how long the end of a subscription may take.
const unsubscribeTimeout = 5 * time.Second

// subscribe makes a place where the events of a run wait, and asks the daemon for them. The place is there before the daemon
// knows of it, so that no event finds none. end must be called when the error is nil.
func (l *link) subscribe(ctx context.Context, run string) (w *watch, end func(), err error) {
	select {
	case l.turn <- struct{}{}: // else an unsubscribe could overtake a subscribe to the same run
		defer func() { <-l.turn }()
	case <-l.over:
		return nil, nil, ErrLost
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	w = &watch{over: l.over, some: make(chan struct{}, 1)}
	l.mu.Lock()
	l.watches[run] = append(l.watches[run], w)
	l.mu.Unlock()
	if err := l.call(ctx, rpcapi.RunsSubscribe, rpcapi.RunParams{RunID: run}, nil); err != nil {
		l.forget(run, w)
		return nil, nil, err
	}
	l.each(run, func(other *watch) {
		if other != w {
			other.lose() // the daemon began anew: what was on its way to the others may be gone
		}
	})
	return w, func() { l.unsubscribe(run, w) }, nil
}

func (l *link) unsubscribe(run string, w *watch) {
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeTimeout)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.over:
		return
	}
	if l.forget(run, w) {
		_ = l.call(ctx, rpcapi.RunsUnsubscribe, rpcapi.RunParams{RunID: run}, nil) // lost: then it is unsubscribed
	}
}

// forget takes a place away, and tells whether it was the last of its run.
func (l *link) forget(run string, w *watch) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := slices.DeleteFunc(l.watches[run], func(o *watch) bool { return o == w })
	if l.watches[run] = left; len(left) == 0 {
		delete(l.watches, run)
	}
	return len(left) == 0
}

// each does something with every place of a run.
func (l *link) each(run string, do func(*watch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches[run] {
		do(w)
	}
}
