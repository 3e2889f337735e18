package tape

import "strconv"

const (
	// ConversationKey is a further key of exchanges, ws_open, name_lookup and net_refused: the number of the conversation of the MCP server that asked. What
	// the program asked has none. Of a process_spawn it is that of the server that the process is, or that started it.
	ConversationKey = "conversation"
	// WithinKey is a further key of mcp_open: the number of the conversation of the MCP server that holds this one as a client.
	WithinKey = "within"
	// OpenerKey is a further key of exchanges, name_lookup and net_refused: the spawn_id of the process that opened the connection, or
	// asked, or the number of a thread of it that has times of its own.
	OpenerKey = "by"
	// OverKey is a further key of a process_spawn: the global ordinal when the process had ended. Its record may come later.
	OverKey = "until"
)

// AskerOf returns the number of the conversation of the MCP server that made an exchange, opened a WebSocket, ran a program, tried the network or began a
// conversation of its own; 0 where the program did, and for other kinds.
func AskerOf(k Kind) uint64 {
	key := ConversationKey
	switch k.(type) {
	case *LLMCall, *HTTPExchange, *WSOpen, *ProcessSpawn, *NameLookup, *NetRefused:
	case *MCPOpen:
		key = WithinKey
	default:
		return 0
	}
	n, err := strconv.ParseUint(string(FieldValue(*Extras(k), key)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// NumberField is the further key of that name that holds the number n; none for 0.
func NumberField(name string, n uint64) []Field {
	if n == 0 {
		return nil
	}
	return []Field{{Name: name, Value: strconv.AppendUint(nil, n, 10)}}
}
