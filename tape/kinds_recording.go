package tape

import (
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// WSOpen is the start of a WebSocket conversation.
type WSOpen struct {
	URL                             string
	Lane                            string
	Arrival                         uint64
	RequestHeaders, ResponseHeaders []HeaderField
	Status                          int    // of the answer: 101, or another where no conversation came of it; 0 for none
	Connection                      uint64 // the number that its messages name it by; 0 means Arrival
	Extra                           []Field
}

// Name implements Kind.
func (*WSOpen) Name() string { return "ws_open" }

func (k *WSOpen) extra() *[]Field { return &k.Extra }

func (k *WSOpen) fields(c *codec) {
	c.text("url", &k.URL, optional)
	c.text("lane", &k.Lane, optional)
	number(c, "arrival", &k.Arrival, optional)
	c.headers("request_headers", &k.RequestHeaders)
	c.headers("response_headers", &k.ResponseHeaders)
	number(c, "status", &k.Status, optional)
	number(c, "connection", &k.Connection, optional)
}

// WSMessage is one message of a WebSocket conversation.
type WSMessage struct {
	Connection uint64
	Direction  string // "sent" by the program, "received" by it
	Opcode     string // "text" or "binary"
	Payload    *Payload
	Extra      []Field
}

// Name implements Kind.
func (*WSMessage) Name() string { return "ws_message" }

func (k *WSMessage) extra() *[]Field { return &k.Extra }

func (k *WSMessage) fields(c *codec) {
	number(c, "connection", &k.Connection, optional)
	c.text("direction", &k.Direction, optional)
	c.text("opcode", &k.Opcode, optional)
	c.payload("payload", &k.Payload, optional)
}

// WSClose is the end of a WebSocket conversation.
type WSClose struct {
	Connection uint64
	Code       int
	Reason     string
	Extra      []Field
}

// Name implements Kind.
func (*WSClose) Name() string { return "ws_close" }

func (k *WSClose) extra() *[]Field { return &k.Extra }

func (k *WSClose) fields(c *codec) {
	number(c, "connection", &k.Connection, optional)
	number(c, "code", &k.Code, optional)
	c.text("reason", &k.Reason, optional)
}

// TLSRefused is a TLS client that would not have the recorder's certificate.
type TLSRefused struct {
	Host   string
	Port   int
	Reason string
	Extra  []Field
}

// Name implements Kind.
func (*TLSRefused) Name() string { return "tls_refused" }

func (k *TLSRefused) extra() *[]Field { return &k.Extra }

func (k *TLSRefused) fields(c *codec) {
	c.text("host", &k.Host, optional)
	number(c, "port", &k.Port, optional)
	c.text("reason", &k.Reason, optional)
}

// NetRefused is network traffic that was not let out, and a Unix socket of the host's that was not reached.
type NetRefused struct {
	Addr   string // of a Unix socket its path
	Port   int
	Reason string
	Extra  []Field
}

// Name implements Kind.
func (*NetRefused) Name() string { return "net_refused" }

func (k *NetRefused) extra() *[]Field { return &k.Extra }

func (k *NetRefused) fields(c *codec) {
	c.text("addr", &k.Addr, optional)
	number(c, "port", &k.Port, optional)
	c.text("reason", &k.Reason, optional)
}

// NameLookup is a name that was looked up in DNS.
type NameLookup struct {
	Host   string // the name, without a dot at its end
	Type   string // "A", "AAAA", "PTR"
	Result string // "answered", "empty" where there is no record of this type, "refused"
	Extra  []Field
}

// Name implements Kind.
func (*NameLookup) Name() string { return "name_lookup" }

func (k *NameLookup) extra() *[]Field { return &k.Extra }

func (k *NameLookup) fields(c *codec) {
	c.text("host", &k.Host, optional)
	c.text("type", &k.Type, optional)
	c.text("result", &k.Result, optional)
}

// DirList is one listing of a directory.
type DirList struct {
	Path        string
	NamesDigest cas.Digest // of the bytes of Names
	Names       *Payload   // a JSON list of the names, sorted by their bytes
	Extra       []Field
}

// Name implements Kind.
func (*DirList) Name() string { return "dir_list" }

func (k *DirList) extra() *[]Field { return &k.Extra }

func (k *DirList) fields(c *codec) {
	c.text("path", &k.Path, optional)
	c.digest("names_digest", &k.NamesDigest, optional)
	c.payload("names", &k.Names, optional)
}

// EnvRead is one reading of an environment variable.
type EnvRead struct {
	VarName string
	Value   *Payload // nil where the variable was not set, or the producer does not tell
	Extra   []Field
}

// Name implements Kind.
func (*EnvRead) Name() string { return "env_read" }

func (k *EnvRead) extra() *[]Field { return &k.Extra }

func (k *EnvRead) fields(c *codec) {
	c.text("name", &k.VarName, optional)
	c.payload("value", &k.Value, optional)
}

// FileStat is one look at what stands at a path, or does not: of a run that asked whether a file exists, or that could not
// read one.
type FileStat struct {
	Path     string
	Type     string // "file", "dir", "link", "none" or "refused"
	LenBytes int64  // of a file
	Mode     string // of a file that may be executed: "100755"
	Extra    []Field
}

// Name implements Kind.
func (*FileStat) Name() string { return "file_stat" }

func (k *FileStat) extra() *[]Field { return &k.Extra }

func (k *FileStat) fields(c *codec) {
	c.text("path", &k.Path, optional)
	c.text("type", &k.Type, optional)
	number(c, "len_bytes", &k.LenBytes, optional)
	c.text("mode", &k.Mode, optional)
}

// RandomRead is one reading of random bytes.
type RandomRead struct {
	Length  int64
	Payload *Payload
	Extra   []Field
}

// Name implements Kind.
func (*RandomRead) Name() string { return "random_read" }

func (k *RandomRead) extra() *[]Field { return &k.Extra }

func (k *RandomRead) fields(c *codec) {
	number(c, "length", &k.Length, optional)
	c.payload("payload", &k.Payload, optional)
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

// Name implements Kind.
func (*PolicyVerdict) Name() string { return "policy_verdict" }

func (k *PolicyVerdict) extra() *[]Field { return &k.Extra }

func (k *PolicyVerdict) fields(c *codec) {
	c.text("policy_set", &k.PolicySet, optional)
	c.text("action_id", &k.ActionID, optional)
	c.text("tool", &k.Tool, optional)
	c.digest("params_digest", &k.ParamsDigest, optional)
	c.payload("params_payload", &k.ParamsPayload, optional)
	c.json("state", &k.State)
	c.json("verdict", &k.Verdict)
}
