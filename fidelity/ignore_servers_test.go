package fidelity

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestServersAside: what MCP servers asked themselves is a note where a replay lacks it, and where two recordings differ in it. What the
// program asked gates, be it the same.
func TestServersAside(t *testing.T) {
	type kinds = []tape.Kind
	const url = "http://api.test/page"
	own := func() tape.Kind { return fetched(url) }
	by := func(k tape.Kind, key string) tape.Kind {
		*tape.Extras(k) = append(*tape.Extras(k), tape.NumberField(key, 1)...)
		return k
	}
	server := func() tape.Kind { return by(fetched(url), tape.ConversationKey) }
	talk := func() kinds {
		all := kinds{by(opened("inner"), tape.WithinKey), tool(1, "read", `{}`, "x"), text("stdout", 3, "y"), closed(0, "")}
		all[0].(*tape.MCPOpen).Conversation, all[1].(*tape.MCPJSONRPC).Conversation = 2, 2
		all[2].(*tape.MCPText).Conversation, all[3].(*tape.MCPClose).Conversation = 2, 2
		return all
	}
	ws := func() kinds {
		return kinds{by(socket(3, "ws:live.test"), tape.ConversationKey), says(3, "sent", "1"), &tape.WSClose{Connection: 3, Code: 1000}}
	}
	tests := []struct {
		name       string
		a, b       kinds
		sides      [2]string
		diverge    int
		left       int
		note       string
		wantNoNote bool
	}{
		{name: "an exchange", a: kinds{server(), own()}, b: kinds{own()}, note: "1 exchange of MCP servers, which did not run"},
		{name: "the program's own is still missed", a: kinds{server(), own()}, diverge: 1, left: 1, note: "1 exchange of MCP servers"},
		{name: "and nothing of a server stands for one of the program", a: kinds{server()}, b: kinds{own()}, diverge: 1, note: "1 exchange"},
		{name: "a talk and a socket", a: append(talk(), ws()...), note: "1 exchange and 1 conversation of MCP servers, which did not run"},
		{
			name: "two recordings", a: kinds{server(), server()}, b: kinds{server()}, sides: [2]string{"A", "B"},
			note: "what MCP servers asked themselves does not gate: A 2 exchanges, B 1 exchange",
		},
		{name: "none", a: kinds{own()}, b: kinds{own()}, wantNoNote: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compareLanes(t, Semantic, tt.a, tt.b, &LaneOptions{Masks: digitMasks, Sides: tt.sides})
			if len(r.Divergences) != tt.diverge || len(r.Unasked) != tt.left {
				t.Errorf("%+v, unasked %v", r.Divergences, r.Unasked)
			}
			notes := strings.Join(r.Notes, "\n")
			if tt.wantNoNote != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}
