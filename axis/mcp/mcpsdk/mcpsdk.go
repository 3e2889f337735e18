// Package mcpsdk puts package mcp behind the Transport of the official Go SDK: one that records what passes through another, and one
// that answers from a tape.
//
// Goals: a Go program, or its test, that speaks MCP by the SDK is recorded and replayed without a process of its own, as httptape does
// it for HTTP. Non-goals: the bytes of the wire. The SDK decodes what it reads and encodes what it writes, so a tape made here holds
// messages as the SDK writes them: an id over 2^53 is rounded, and a line that is no message never gets so far. Whoever needs the bytes
// records the process (tapedeck record, tapedeck mcp wrap).
//
// Ordering: a message is on the tape, and the record of an answer with the kernel, before the SDK has it. Of a StreamableClientTransport
// the RecordTransport hides what the SDK tells its own connections alone (the version that was agreed on, that the session is there),
// so the server's stream of its own is not opened and no version stands in the headers.
package mcpsdk

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// A RecordTransport records what passes through another Transport, a conversation for each Connect.
type RecordTransport struct {
	Transport sdk.Transport
	Log       *mcp.Log
	// Opened says what the conversation is with. Nil is what Transport tells of it: the command of a CommandTransport, the endpoint of
	// one over HTTP.
	Opened *mcp.Opened
	// Side is who uses the transport; "" is the client.
	Side mcp.Side
}

// Connect implements sdk.Transport.
func (t *RecordTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	opened := t.Opened
	if opened == nil {
		opened = openedOf(t.Transport)
	}
	inner, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recorded{Connection: inner, conversation: t.Log.Begin(opened), side: cmp.Or(t.Side, mcp.Client)}, nil
}

// SupportsProtocolVersion implements sdk.ProtocolVersionSupporter: it is the other transport that is asked.
func (t *RecordTransport) SupportsProtocolVersion(version string) bool {
	s, ok := t.Transport.(sdk.ProtocolVersionSupporter)
	return !ok || s.SupportsProtocolVersion(version)
}

// openedOf is what a transport tells of the server.
func openedOf(t sdk.Transport) *mcp.Opened {
	switch t := t.(type) {
	case *sdk.CommandTransport:
		o := &mcp.Opened{Transport: mcp.Stdio, Program: t.Command.Path, Cwd: t.Command.Dir}
		if len(t.Command.Args) > 0 {
			o.Args = t.Command.Args[1:]
		}
		return o
	case *sdk.StreamableClientTransport:
		return &mcp.Opened{Transport: mcp.HTTP, URL: t.Endpoint}
	case *sdk.SSEClientTransport:
		return &mcp.Opened{Transport: mcp.HTTP, URL: t.Endpoint}
	}
	return &mcp.Opened{Transport: mcp.Stdio}
}

// recorded is a connection whose messages are recorded.
type recorded struct {
	sdk.Connection
	conversation *mcp.Conversation
	side         mcp.Side
}

// Read implements sdk.Connection.
func (c *recorded) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		if ctx.Err() == nil { // else it is the caller who waits no more
			if errEnd := c.end(c.side.Other()); errEnd != nil {
				return nil, errEnd
			}
		}
		return m, err
	}
	return m, c.record(c.side.Other(), m)
}

// Write implements sdk.Connection.
func (c *recorded) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := c.record(c.side, m); err != nil {
		return err
	}
	return c.Connection.Write(ctx, m)
}

// Close implements sdk.Connection.
func (c *recorded) Close() error {
	return errors.Join(c.Connection.Close(), c.end(c.side))
}

func (c *recorded) record(from mcp.Side, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.conversation.Line(from, append(b, '\n'), 0)
}

// end ends the conversation; the first end counts.
func (c *recorded) end(by mcp.Side) error { return c.conversation.End(mcp.Ended{By: by}) }

// An AnswerTransport answers a client from a tape, for one Connect.
type AnswerTransport struct {
	Served *mcp.Served
	// Options say how. Its streams are the transport's own. Nil and zero work.
	Options *mcp.ServeOptions
	// Ended is told how the conversation ended, when nothing of it goes on any more: see mcp.Served.Serve. Nil is nobody.
	Ended func(exit int, err error)
}

// Connect implements sdk.Transport.
func (t *AnswerTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	var o mcp.ServeOptions
	if t.Options != nil {
		o = *t.Options
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	o.In, o.Out = in, out
	inner, err := (&sdk.IOTransport{Reader: fromServer, Writer: toServer, MaxLineLength: -1}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &answered{Connection: inner, done: make(chan struct{})}
	go func() { // ends with the pipes, which Close closes; Close waits
		defer close(c.done)
		exit, err := t.Served.Serve(context.WithoutCancel(ctx), &o)
		out.Close()
		in.CloseWithError(io.ErrClosedPipe)
		if t.Ended != nil {
			t.Ended(exit, err)
		}
	}()
	return c, nil
}

// answered is a connection with a Served.
type answered struct {
	sdk.Connection
	done chan struct{}
}

// Close implements sdk.Connection.
func (c *answered) Close() error {
	err := c.Connection.Close()
	<-c.done
	return err
}
