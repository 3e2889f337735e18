package recording

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestMCPSeen(t *testing.T) {
	var m MCPSeen
	if m.OrNil() != nil {
		t.Error("a run without a server has something of one")
	}
	for _, k := range []tape.Kind{
		&tape.MCPOpen{Server: "files"},
		&tape.MCPJSONRPC{Server: "files", Method: "initialize"},
		&tape.MCPJSONRPC{Server: "files", Method: "notifications/initialized"},
		&tape.MCPJSONRPC{Server: "files", Method: "tools/list"},
		&tape.MCPJSONRPC{Server: "files", Method: "tools/call", From: "client"},
		&tape.MCPJSONRPC{Server: "files", Method: "sampling/createMessage", From: "server"},
		&tape.MCPOpen{Server: "files#2"},
		&tape.MCPJSONRPC{Server: "files#2", Method: "tools/call"},
		&tape.MCPOpen{Server: "c#"},
		&tape.HTTPExchange{Exchange: tape.Exchange{Lane: "mcp:c#"}},
		&tape.HTTPExchange{Exchange: tape.Exchange{Lane: "http:a"}},
	} {
		m.Add(k)
	}
	want := MCPSeen{Calls: 3, Servers: []string{"files", "c#"}, Carried: 1}
	if d := cmp.Diff(want, m, cmp.AllowUnexported(MCPSeen{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
