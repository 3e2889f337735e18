package mcp

import "encoding/json"

// Methods that open a conversation.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
)

// Opens reports whether a client's first line opens a conversation of MCP: `initialize` of any version, or what versions without it
// begin with, server/discover or a request that names its version itself. Editors and agents speak JSON-RPC to other things, whose
// initialize names no version, or one that is a number.
func Opens(line []byte) bool {
	messages, _, err := Parse(line)
	if err != nil {
		return false
	}
	for i := range messages {
		if m := &messages[i]; m.IsRequest() && opens(m) {
			return true
		}
	}
	return false
}

func opens(m *Message) bool {
	switch m.Method {
	case methodInitialize:
		return m.initializes()
	case methodDiscover:
		return true
	}
	return modernVersion(m) != ""
}

// initializes reports whether an initialize is MCP's.
func (m *Message) initializes() bool {
	if version := member(m.Params, "protocolVersion"); version != nil {
		return version[0] == '"'
	}
	return isObject(member(m.Params, "clientInfo")) && isObject(member(m.Params, "capabilities"))
}

func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// modernVersion is the version that a request names in its _meta; "" for none.
func modernVersion(m *Message) string {
	return str(member(member(m.Params, "_meta"), metaPrefix+"protocolVersion"))
}
