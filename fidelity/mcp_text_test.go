package fidelity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestMCPText holds what people read of two runs to how it stood when it was last read through.
func TestMCPText(t *testing.T) {
	read := func(arrival uint64, path, text string) *tape.MCPJSONRPC {
		return tool(arrival, "read_file", fmt.Sprintf(`{"path":%q}`, path), text)
	}
	a := []tape.Kind{
		opened("files"), read(1, "notes.txt", "alpha"), read(3, "b.txt", "beta"), read(5, "c.txt", "gamma delta"),
		call("llm:a", 1, `{"messages":[{"role":"tool","content":"gamma delta"}]}`, "x"), closed(0, ""), program("done\n", 0),
	}
	tests := []struct {
		name, want string
		b          []tape.Kind
	}{
		{
			"another recording", `
DIVERGED: 6 divergences (semantic, 7 records recorded, 8 on replay, 3 MCP calls compared)
first divergence: tools/call read_file: arguments.path: "notes.txt" → "other.txt"
  mcp:files, seq 1, mcp_request_digest
    arguments.path
      - "notes.txt"
      + "other.txt"
    nothing before it differs, so it is taken for the cause of what follows
then 5 more:
  mcp:files (4)
    seq 1 tools/call read_file, the answer: content[0].text: "alpha" → "omega"
    seq 3 in the replay and not recorded: mcp_json_rpc files tools/call list
      parameters
        + list {deep: true}
    seq 3 tools/call read_file, the answer: content[0].text: "gamma delta" → "gamma epsilon"
    seq 5 the server's exit code changed: recorded 0, replay 1 (files)
  llm:a (1)
    seq 4 the request to the model changed (POST https://api.test/v1/messages)
      messages[0].content (tool)
        - "gamma delta"
        + "gamma epsilon"
      follows from the divergence at seq 3 (the MCP answer), where "epsilon" first appears
`, []tape.Kind{
				opened("files"), read(1, "other.txt", "omega"), read(3, "b.txt", "beta"), tool(5, "list", `{"deep":true}`, "b.txt"),
				read(7, "c.txt", "gamma epsilon"), call("llm:a", 1, `{"messages":[{"role":"tool","content":"gamma epsilon"}]}`, "x"),
				closed(1, ""), program("done\n", 0),
			},
		},
		{
			"a replay", `
DIVERGED: 6 divergences, 2 refused, 3 never asked for (semantic, 7 records recorded, 6 on replay, 2 MCP calls compared)
first divergence: tools/call read_file: arguments.path: "notes.txt" → "other.txt"
  mcp:files, seq 1, mcp_request_digest
    arguments.path
      - "notes.txt"
      + "other.txt"
    nothing before it differs, so it is taken for the cause of what follows
then 5 more, which follow from the refused request:
  the MCP request changed (1): files tools/call read_file
  calls of tool servers that were not made (1): files tools/call read_file
  the request to the model changed (1): POST https://api.test/v1/messages m
  the exit code changed: recorded 0, replay 1
  stdout changed
`, []tape.Kind{
				opened("files"), notOnTape(read(1, "other.txt", "omega")), notOnTape(read(3, "other.txt", "omega")),
				call("llm:a", 1, `{"messages":[{"role":"tool","content":"nothing"}]}`, "x"), closed(0, ""), program("failed\n", 1),
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := compareLanes(t, Semantic, a, tt.b, nil).WriteText(&out, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), out.String()); d != "" {
				t.Errorf("-want +got\n%s\n%s", d, out.String())
			}
		})
	}
}
