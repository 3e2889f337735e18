package mcpsdk_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/mcpsdk"
)

// A program that speaks MCP by the SDK is answered from a recording of its server.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "weather.mcp.tape")
	record(path) // tapedeck mcp wrap -o weather.rec -- weather-server

	b, err := testbench.Open(&testbench.Config{MCP: path})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx := context.Background()
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, mcpsdk.Transport(b, "weather"), nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	for _, city := range []string{"Lisbon", "Reykjavík"} {
		res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "degrees", Arguments: map[string]any{"city": city}})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(res.Content[0].(*sdk.TextContent).Text)
	}
	// Output:
	// 21
	// calling "tools/call": mcp: not on the tape: tools/call degrees of weather; nearest is record 0, which differs in arguments.city: "Lisbon" -> "Reykjavík"; record the run again, or undo what changed the call
}

// record leaves a tape with one call, as any producer of the format writes it.
func record(path string) {
	var out bytes.Buffer
	w, err := tape.NewWriter(&out, &tape.Header{Producer: "example"})
	if err != nil {
		panic(err)
	}
	rec := tape.NewRecorder(w, nil)
	k := &tape.MCPJSONRPC{Server: "weather", Method: "tools/call"}
	k.Request, err = rec.Payload([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"degrees","arguments":{"city":"Lisbon"}}}`))
	if err != nil {
		panic(err)
	}
	k.Response, err = rec.Payload([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"21"}]}}`))
	if err != nil {
		panic(err)
	}
	k.RequestDigest, k.ResponseDigest = k.Request.Hash, k.Response.Hash
	if err := rec.Record(k); err != nil {
		panic(err)
	}
	if err := rec.Flush(); err != nil {
		panic(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		panic(err)
	}
}
