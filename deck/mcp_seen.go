package deck

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// MCPSeen is what a run had of tool servers.
type MCPSeen struct {
	Calls   int      `json:"calls"`   // what the program asked them for: no notifications, no handshakes
	Servers []string `json:"servers"` // in the order in which they were met
	carried int      // HTTP exchanges that carried messages, which Counts has among the others
}

func (m *MCPSeen) add(k tape.Kind) {
	switch k := k.(type) {
	case *tape.MCPOpen:
		m.met(k.Server)
	case *tape.MCPJSONRPC:
		m.met(k.Server)
		if k.IsCall() {
			m.Calls++
		}
	case *tape.HTTPExchange:
		if strings.HasPrefix(k.Lane, "mcp:") {
			m.carried++
		}
	}
}

// met notes a server. A further conversation with one of the same name is one with that server too.
func (m *MCPSeen) met(name string) {
	if server := tape.MCPServer(name); !slices.Contains(m.Servers, server) {
		m.Servers = append(m.Servers, strings.Clone(server)) // it is cut from the record, which would stay as a whole
	}
}

// Carried is how many HTTP exchanges carried messages of tool servers.
func (m *MCPSeen) Carried() int { return m.carried }

// orNil is m where there was a server.
func (m *MCPSeen) orNil() *MCPSeen {
	if len(m.Servers) == 0 {
		return nil
	}
	return m
}
