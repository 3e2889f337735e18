package host

import (
	"context"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

var mcpFunctions = []*Function{
	{
		Name: "mcp.call", do: callTool,
		Params: []Param{
			{Name: "server", Type: "string"}, {Name: "tool", Type: "string"}, {Name: "arguments", Type: "dict"},
		},
		Doc:     "Calls a tool of an MCP server.",
		Result:  "the result of tools/call, a dict: content, and what else the server gave",
		Example: `found = mcp.call("search", "query", {"q": "tape"})["content"]`,
	},
}

func callTool(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	result, err := b.CallTool(ctx, a.text(0), a.text(1), a.object(2))
	if err != nil {
		return nil, err
	}
	return Decode(result)
}
