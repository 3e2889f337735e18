package mcpsdk_test

import (
	"context"
	"fmt"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp/mcpsdk"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// constant is what the servers of the benchmarks answer.
const constant = "the answer to every call, which is about as long as what a tool says as a rule: a line or two of text"

// bareServer connects a client to the SDK's own server, which answers with a constant.
func bareServer(t testing.TB) *sdk.ClientSession {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: constant}}}
	s.AddTool(&sdk.Tool{Name: "const", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil })
	there, here := sdk.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Close() })
	return session(t, newClient(new(heard)), here, "2025-11-25")
}

// replayedServer connects a client to a tape of n calls. With onTape the replay has a tape of its own, and secrets and
// masks to look for, as deck's has.
func replayedServer(t testing.TB, n int, onTape bool) *sdk.ClientSession {
	t.Helper()
	m := newMemoryTape(t)
	c := mcp.NewLog(m.rec, nil, nil, nil).Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "bare"})
	say := func(from mcp.Side, format string, args ...any) {
		if err := c.Line(from, fmt.Appendf(nil, format+"\n", args...), 0); err != nil {
			t.Fatal(err)
		}
	}
	say(mcp.Client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"elicitation":{"form":{}},"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"test","version":"1"},"protocolVersion":"2025-11-25"}}`)
	say(mcp.Server, `{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}},"protocolVersion":"2025-11-25","serverInfo":{"name":"bare","version":"1"}}}`)
	say(mcp.Client, `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`)
	for i := range n {
		say(mcp.Client, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"const","arguments":{"text":"n"}}}`, i+2)
		say(mcp.Server, `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%q}]}}`, i+2, constant)
	}
	if err := c.End(mcp.Ended{By: mcp.Client}); err != nil {
		t.Fatal(err)
	}
	if !onTape {
		return session(t, newClient(new(heard)), &mcpsdk.AnswerTransport{Served: m.book(t, nil).Conversation(1)}, "2025-11-25")
	}
	s, mask := scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"API_KEY=0123456789abcdef"}}), masks.New(&masks.Options{Home: "/home/u"})
	served := m.book(t, &mcp.BookOptions{Scrub: s, Mask: mask}).Conversation(1)
	o := mcp.ServeOptions{Reveal: s.Reveal}
	o.Log = mcp.NewLog(newMemoryTape(t).rec, s, mask, nil).Begin(&mcp.Opened{Transport: mcp.Stdio, Recorded: served.Recorded()})
	return session(t, newClient(new(heard)), &mcpsdk.AnswerTransport{Served: served, Options: &o}, "2025-11-25")
}

func benchmarkCalls(b *testing.B, cs *sdk.ClientSession) {
	defer cs.Close()
	p := &sdk.CallToolParams{Name: "const", Arguments: map[string]any{"text": "n"}}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		res, err := cs.CallTool(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		if res.Content[0].(*sdk.TextContent).Text != constant {
			b.Fatal("another answer")
		}
	}
	b.StopTimer()
}

func BenchmarkBareServer(b *testing.B)     { benchmarkCalls(b, bareServer(b)) }
func BenchmarkReplayed(b *testing.B)       { benchmarkCalls(b, replayedServer(b, b.N, false)) }
func BenchmarkReplayedOnTape(b *testing.B) { benchmarkCalls(b, replayedServer(b, b.N, true)) }
