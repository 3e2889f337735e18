package tape

import (
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/cas"
)

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

// The phases. A reader takes an unknown one for PhaseUserScript.
const (
	PhaseUserScript      Phase = iota // the program's own body
	PhaseRuntimeFinalize              // the runtime, while it drained after the program
)

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

// A Payload is a run of bytes that a record holds: inline as text when they are UTF-8 and at most InlineLimit long, else
// by digest in the tape's store.
type Payload struct {
	Hash   cas.Digest
	Text   string // the bytes, when Inline
	Inline bool
	Len    int64 // length in bytes
}

// InlineLimit is the longest payload, in bytes, that stands in the record itself.
const InlineLimit = 4096

// ClockRead is one reading of a clock.
type ClockRead struct {
	Source  string // "wall" or "monotonic"
	ValueMS int64
	Extra   []Field
}

// ClockSleep is one sleep.
type ClockSleep struct {
	DurationMS int64
	Extra      []Field
}

// Exchange is one HTTP request and its answer, as LLMCall and HTTPExchange hold it.
type Exchange struct {
	Method          string
	URL             string // absolute, scrubbed
	RequestHeaders  []HeaderField
	RequestDigest   cas.Digest // of the matchable surface (LLMCall), of the body (HTTPExchange)
	RequestPayload  *Payload   // the scrubbed body; nil for none
	Status          int        // 0 where no upstream answered
	ResponseHeaders []HeaderField
	Response        *Payload // the scrubbed body; nil where no upstream answered
	Stream          []Chunk  // the chunks of Response, in order
	Lane            string   // the conversation or host it belongs to
	Arrival         uint64   // order in which requests arrived, from 1; 0 where the tape has none
	Error           string   // what cut the exchange; "" for none
}

// A HeaderField is one header line.
type HeaderField struct {
	Name, Value string
}

// A Chunk is what one read of the upstream's body gave: Length bytes of the response at Offset, TMS ms after the request
// arrived.
type Chunk struct {
	Offset, Length int64
	TMS            int64
}

// LLMCall is one call of a model. A tape of another producer holds RequestDigest and Response alone.
type LLMCall struct {
	Provider     string // "anthropic", "openai", "gemini"
	Endpoint     string // "messages", "chat.completions", …
	Model        string
	ParamsDigest cas.Digest
	Usage        json.RawMessage // the provider's own usage object; nil for none
	Exchange
	Extra []Field
}

// HTTPExchange is any other HTTP request and its answer.
type HTTPExchange struct {
	Exchange
	Extra []Field
}

// FileRead is one file that the run read. ContentHash alone never requires a blob.
type FileRead struct{ File }

// FileWrite is one file that the run wrote.
type FileWrite struct{ File }

// FileDelete is one file that the run deleted. A tape of another producer holds Path alone.
type FileDelete struct{ File }

// File is what FileRead, FileWrite and FileDelete hold.
type File struct {
	Path          string     // relative to the work tree with /; ~/…; $TMP/…; else absolute
	ContentHash   cas.Digest // not of FileDelete
	LenBytes      int64      // not of FileDelete
	Content       *Payload
	Before        *Payload
	ContentDigest cas.Digest // after masking and renumbering
	Mode          string     // octal Unix mode with the type, as Git writes it: "100644", "100755", "120000"
	SpawnID       uint64     // 0 for none
	Extra         []Field
}

// ProcessSpawn is one process from its first successful execve to its end. The recorded program itself is the last one
// on its tape.
type ProcessSpawn struct {
	Program       string
	Args          []string
	Cwd           *string
	ExitCode      int // 128+n on death by signal n
	DurationMS    int64
	Stdout        *Payload
	Stderr        *Payload
	SpawnID       uint64 // 0 for none
	ParentSpawnID uint64
	Signal        string // "SIGTERM"; "" for none
	Stdin         *Payload
	StdoutDigest  cas.Digest // after masking and renumbering
	StderrDigest  cas.Digest
	Extra         []Field
}

// MCPJSONRPC is one request to an MCP server and its answer, redacted.
type MCPJSONRPC struct {
	Server, Method                string
	RequestDigest, ResponseDigest cas.Digest
	LatencyMS                     int64
	Request, Response             *Payload
	Extra                         []Field
}

// WSOpen is the start of a WebSocket conversation.
type WSOpen struct {
	URL                             string
	Lane                            string
	Arrival                         uint64
	RequestHeaders, ResponseHeaders []HeaderField
	Extra                           []Field
}

// WSMessage is one message of a WebSocket conversation.
type WSMessage struct {
	Connection uint64
	Direction  string // "sent" by the program, "received" by it
	Opcode     string // "text" or "binary"
	Payload    *Payload
	Extra      []Field
}

// WSClose is the end of a WebSocket conversation.
type WSClose struct {
	Connection uint64
	Code       int
	Reason     string
	Extra      []Field
}

// TLSRefused is a TLS client that would not have the recorder's certificate.
type TLSRefused struct {
	Host   string
	Port   int
	Reason string
	Extra  []Field
}

// NetRefused is network traffic that was not let out.
type NetRefused struct {
	Addr   string
	Port   int
	Reason string
	Extra  []Field
}

// DirList is one listing of a directory.
type DirList struct {
	Path        string
	NamesDigest cas.Digest
	Extra       []Field
}

// EnvRead is one reading of an environment variable.
type EnvRead struct {
	VarName string
	Extra   []Field
}

// RandomRead is one reading of random bytes.
type RandomRead struct {
	Length  int64
	Payload *Payload
	Extra   []Field
}

// PolicyVerdict is one decision of the policy about a proposed action.
type PolicyVerdict struct {
	PolicySet     string
	ActionID      string
	Tool          string
	ParamsDigest  cas.Digest
	ParamsPayload *Payload
	State         json.RawMessage
	Verdict       json.RawMessage
	Extra         []Field
}

// Unknown is a record of a kind that this package does not know.
type Unknown struct {
	KindName string
	JSON     []byte // the whole object of the key "kind", byte for byte
}

// Name implements Kind.
func (*ClockRead) Name() string { return "clock_read" }

// Name implements Kind.
func (*ClockSleep) Name() string { return "clock_sleep" }

// Name implements Kind.
func (*LLMCall) Name() string { return "llm_call" }

// Name implements Kind.
func (*HTTPExchange) Name() string { return "http_exchange" }

// Name implements Kind.
func (*FileRead) Name() string { return "file_read" }

// Name implements Kind.
func (*FileWrite) Name() string { return "file_write" }

// Name implements Kind.
func (*FileDelete) Name() string { return "file_delete" }

// Name implements Kind.
func (*ProcessSpawn) Name() string { return "process_spawn" }

// Name implements Kind.
func (*MCPJSONRPC) Name() string { return "mcp_json_rpc" }

// Name implements Kind.
func (*WSOpen) Name() string { return "ws_open" }

// Name implements Kind.
func (*WSMessage) Name() string { return "ws_message" }

// Name implements Kind.
func (*WSClose) Name() string { return "ws_close" }

// Name implements Kind.
func (*TLSRefused) Name() string { return "tls_refused" }

// Name implements Kind.
func (*NetRefused) Name() string { return "net_refused" }

// Name implements Kind.
func (*DirList) Name() string { return "dir_list" }

// Name implements Kind.
func (*EnvRead) Name() string { return "env_read" }

// Name implements Kind.
func (*RandomRead) Name() string { return "random_read" }

// Name implements Kind.
func (*PolicyVerdict) Name() string { return "policy_verdict" }

// Name implements Kind.
func (u *Unknown) Name() string { return u.KindName }
