package tape

import "encoding/json"

// Version is the format version that this package writes, and the highest that it reads.
const Version = 1

// A Header is the first line of a tape.
type Header struct {
	Version         int      // format version; 0 writes Version
	Producer        string   // harn_version: the producer's name and version
	StartedAtUnixMS *int64   // Unix epoch ms, nil where the run used the real clock
	ScriptPath      *string  // informational
	Argv            []string // the program's arguments
	Extra           []Field  // further keys, as they stood
}

// A Field is a JSON key and its value, verbatim.
type Field struct {
	Name  string
	Value json.RawMessage
}

// A Phase says whose doing a record is.
type Phase uint8

// The phases. A reader takes an unknown one for PhaseUserScript, and what is saved from it says so.
const (
	PhaseUserScript      Phase = iota // the program's own body
	PhaseRuntimeFinalize              // the runtime, while it drained after the program
)

// String returns the format's name of p.
func (p Phase) String() string {
	if p == PhaseRuntimeFinalize {
		return "runtime_finalize"
	}
	return "user_script"
}

// A Record is one line of a tape after the header.
type Record struct {
	Seq           uint64
	Phase         Phase
	VirtualTimeMS int64 // the run's clock, Unix epoch ms
	MonotonicMS   int64 // ms since the recording began
	Kind          Kind
	G             uint64     // the recorder's global ordinal, from 1; 0 where the tape has none
	Raw           []RawBytes // true bytes of strings that are not UTF-8
	Extra         []Field    // further keys of the line, as they stood
}

// RawBytes holds the true bytes of a string that stands on the tape with U+FFFD in it. Key is the key of the string in
// the kind's object; an element of a list is key.index ("args.2", "request_headers.3").
type RawBytes struct {
	Key   string
	Bytes []byte
}

// A Kind is the payload of a record: one of the pointer types of this package, *Unknown for any other.
type Kind interface {
	// Name is the value of the inner key "kind".
	Name() string
}

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
