// Package mcpsdk is the Transport of the official Go SDK to the MCP servers of a testbench.
//
// A request is answered within the SDK's Write, by the goroutine that asks: no other decides what comes first on the tape. So a client
// that is used from branches of Parallel, or from one goroutine, leaves the same tape in every run. Each request is answered, and
// recorded, as testbench.Bench.AskMCP does it.
//
// Not goals: what a server says without being asked (progress, logs, requests of its own), and notifications of the client, which are
// told to nobody. Package axis/mcp/mcpsdk replays whole conversations.
package mcpsdk

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// Transport returns a transport to an MCP server of b, for any number of clients. What nothing answers is an error of that call and
// leaves the session as it is.
func Transport(b *testbench.Bench, server string) sdk.Transport { return &transport{b, server} }

type transport struct {
	b      *testbench.Bench
	server string
}

// Connect implements sdk.Transport.
func (t *transport) Connect(context.Context) (sdk.Connection, error) {
	return &conn{b: t.b, server: t.server, wake: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// A conn is the connection of one client.
type conn struct {
	b      *testbench.Bench
	server string
	wake   chan struct{} // one token: answers wait
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	answers []jsonrpc.Message
}

// SessionID implements sdk.Connection.
func (c *conn) SessionID() string { return "" }

// Close implements sdk.Connection.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read implements sdk.Connection.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if m := c.next(); m != nil {
			return m, nil
		}
		select {
		case <-c.wake:
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *conn) next() jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) == 0 {
		return nil
	}
	m := c.answers[0]
	c.answers = c.answers[1:]
	return m
}

// Write implements sdk.Connection. What is no request is told to nobody.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return nil
	}
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	answer := c.answer(ctx, r)
	c.mu.Lock()
	c.answers = append(c.answers, answer)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// codeRefused is the code of JSON-RPC for what nothing answers.
const codeRefused = -32000

// answer is the answer to a request. What is wrong with it is an error of JSON-RPC: another would end the connection.
func (c *conn) answer(ctx context.Context, r *jsonrpc.Request) *jsonrpc.Response {
	m, err := c.b.AskMCP(ctx, c.server, r.Method, r.Params)
	switch {
	case err != nil:
		return &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: codeRefused, Message: err.Error()}}
	case m.Error == nil:
		return &jsonrpc.Response{ID: r.ID, Result: m.Result}
	}
	failed := new(jsonrpc.Error)
	if err := json.Unmarshal(m.Error, failed); err != nil {
		failed = &jsonrpc.Error{Code: codeRefused, Message: string(m.Error)}
	}
	return &jsonrpc.Response{ID: r.ID, Error: failed}
}
