package mcp_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// TestServerThatAsksBesideAnother has a server ask before another answers, and the client respond after that: the record of what was
// asked stands behind both answers, and neither server waits for the other on a replay.
func TestServerThatAsksBesideAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemoryTape(t)
		log := mcp.NewLog(m.rec, nil, nil, nil)
		asking, other := log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "a"}), log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "b"})
		say := func(c *mcp.Conversation, from mcp.Side, line string) {
			t.Helper()
			if err := c.Line(from, []byte(line+"\n"), 0); err != nil {
				t.Fatal(err)
			}
		}
		say(asking, mcp.Client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
		say(asking, mcp.Client, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y"}}`)
		say(asking, mcp.Server, `{"jsonrpc":"2.0","id":"s","method":"roots/list"}`)
		say(asking, mcp.Server, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		say(other, mcp.Client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"z"}}`)
		say(other, mcp.Server, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		say(asking, mcp.Client, `{"jsonrpc":"2.0","id":"s","result":{"roots":[]}}`)
		say(asking, mcp.Server, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		for _, c := range []*mcp.Conversation{asking, other} {
			if err := c.End(mcp.Ended{By: mcp.Client}); err != nil {
				t.Fatal(err)
			}
		}
		b := m.book(nil)
		begun := time.Now()
		var all sync.WaitGroup
		serve := func(number uint64, lines ...string) {
			in, client := io.Pipe()
			fromServer, out := io.Pipe()
			all.Go(func() {
				_, _ = b.Conversation(number).Serve(t.Context(), &mcp.ServeOptions{In: in, Out: out})
				out.Close()
			})
			all.Go(func() {
				for _, l := range lines {
					_, _ = io.WriteString(client, l+"\n")
				}
				time.Sleep(time.Millisecond) // of a bubble's clock: all that is due has gone out
				client.Close()
			})
			all.Go(func() { _, _ = io.Copy(io.Discard, fromServer) })
		}
		serve(1, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y"}}`,
			`{"jsonrpc":"2.0","id":"s","result":{"roots":[]}}`)
		serve(2, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"z"}}`)
		all.Wait()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the servers waited %v for each other", took)
		}
	})
}
