package tape

// A known kind can walk its keys in the format's order. The walk is the kind's one definition: the codec that it is given
// writes each key, or reads it, or checks that it was there.
type known interface {
	Kind
	fields(c *codec)
	extra() *[]Field
}

// newKind returns an empty record of the named kind, or nil where this package does not know it.
func newKind(name []byte) known {
	switch string(name) {
	case "clock_read":
		return &ClockRead{}
	case "clock_sleep":
		return &ClockSleep{}
	case "llm_call":
		return &LLMCall{}
	case "http_exchange":
		return &HTTPExchange{}
	case "file_read":
		return &FileRead{}
	case "file_write":
		return &FileWrite{}
	case "file_delete":
		return &FileDelete{}
	case "process_spawn":
		return &ProcessSpawn{}
	case "mcp_json_rpc":
		return &MCPJSONRPC{}
	}
	return newOwnKind(name)
}

// newOwnKind is newKind for the kinds that recordings add to the format.
func newOwnKind(name []byte) known {
	switch string(name) {
	case "mcp_open":
		return &MCPOpen{}
	case "mcp_text":
		return &MCPText{}
	case "mcp_close":
		return &MCPClose{}
	case "ws_open":
		return &WSOpen{}
	case "ws_message":
		return &WSMessage{}
	case "ws_close":
		return &WSClose{}
	case "tls_refused":
		return &TLSRefused{}
	case "net_refused":
		return &NetRefused{}
	case "name_lookup":
		return &NameLookup{}
	case "dir_list":
		return &DirList{}
	case "env_read":
		return &EnvRead{}
	case "file_stat":
		return &FileStat{}
	case "random_read":
		return &RandomRead{}
	case "policy_verdict":
		return &PolicyVerdict{}
	}
	return nil
}

// Unknown is a record of a kind that this package does not know.
type Unknown struct {
	KindName string
	JSON     []byte // the whole object of the key "kind", byte for byte
}

// Name implements Kind.
func (u *Unknown) Name() string { return u.KindName }
