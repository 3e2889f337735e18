package testbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// AskMCP asks an MCP server of the run for anything, as CallTool does for a call of a tool: answered by a recorded request of that method
// with equal params, and recorded. What comes is a message with a Result or an Error, and without an id.
//
// With what a client begins (initialize, server/discover, logging/setLevel) is answered to any client, and so is a ping: from the tape
// where it has an answer, else by one that is made up and stands on no tape. The error is a *RefusedError where nothing answers.
func (b *Bench) AskMCP(ctx context.Context, server, method string, params json.RawMessage) (*mcp.Message, error) {
	if m := b.tools.madeUp(server, method, params); m != nil {
		return m, nil
	}
	return b.tools.ask(ctx, server, method, params)
}

// codeNoMethod is the code of JSON-RPC for a method that a server does not have.
const codeNoMethod = -32601

// madeUp is the answer to what every server answers alike, or to a client's first request where no tape says how the server answered it;
// nil for none. It stands on no tape.
func (t *tools) madeUp(server, method string, params json.RawMessage) *mcp.Message {
	switch method {
	case "ping":
		return &mcp.Message{Result: []byte("{}")}
	case methodInitialize, methodDiscover, "logging/setLevel":
	default:
		return nil
	}
	if t.book == nil || t.book.begin(server, method) != nil || t.b.from == nil && !t.book.knows(server) {
		return nil
	}
	switch method {
	case methodDiscover:
		return &mcp.Message{Error: fmt.Appendf(nil, `{"code":%d,"message":"server/discover is not on the tape: begin with initialize"}`, codeNoMethod)}
	case methodInitialize:
		return t.welcome(server, params)
	}
	return &mcp.Message{Result: []byte("{}")}
}

// welcome is the answer of a server of which a tape holds calls alone, to initialize.
func (t *tools) welcome(server string, params json.RawMessage) *mcp.Message {
	var asked struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &asked) // what names no version gets none
	version, errVersion := jsonscan.Marshal(asked.ProtocolVersion)
	name, errName := jsonscan.Marshal(server)
	if errors.Join(errVersion, errName) != nil {
		return nil
	}
	return &mcp.Message{Result: fmt.Appendf(nil,
		`{"protocolVersion":%s,"capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":%s,"version":""}}`, version, name)}
}
