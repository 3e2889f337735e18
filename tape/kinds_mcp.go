package tape

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// MCPJSONRPC is one JSON-RPC message of a conversation with an MCP server that asks for something or tells it, and its answer,
// both redacted. A tape of another producer holds the keys up to Response alone.
//
// A notification, and a request that got no answer, have the empty payload and the digest of no bytes in the place of one; Error
// says why a request got none.
type MCPJSONRPC struct {
	Server, Method                string
	RequestDigest, ResponseDigest cas.Digest // of the payloads' bytes
	LatencyMS                     int64      // until the answer, or until the request was cut; 0 of a notification
	Request, Response             *Payload   // the messages, whole, as they stood on the wire

	From                       string     // who asked: "client", which is meant by "" too, or "server"
	Conversation               uint64     // number of the conversation on this tape, from 1
	Transport                  string     // "stdio" or "http"
	Arrival                    uint64     // place of the asking line among all lines of the conversation, from 1
	Answered                   uint64     // the same of the answering line; 0 for none
	ParamsDigest, ResultDigest cas.Digest // of params, and of result or error: canonical JSON, masked, without ids
	Exchange, AnswerExchange   uint64     // Arrival of the http_exchange that carried the one and the other; 0 for none
	Error                      string     // why there is no answer
	Extra                      []Field
}

// Name implements Kind.
func (*MCPJSONRPC) Name() string { return "mcp_json_rpc" }

func (k *MCPJSONRPC) extra() *[]Field { return &k.Extra }

func (k *MCPJSONRPC) fields(c *codec) {
	c.text("server", &k.Server, required)
	c.text("method", &k.Method, required)
	c.hash("request_digest", &k.RequestDigest)
	c.hash("response_digest", &k.ResponseDigest)
	c.unsigned("latency_ms", &k.LatencyMS)
	c.payload("request_payload", &k.Request, required)
	c.payload("response_payload", &k.Response, required)
	c.text("from", &k.From, optional)
	number(c, "conversation", &k.Conversation, optional)
	c.text("transport", &k.Transport, optional)
	number(c, "arrival", &k.Arrival, optional)
	number(c, "answered", &k.Answered, optional)
	c.digest("params_digest", &k.ParamsDigest, optional)
	c.digest("result_digest", &k.ResultDigest, optional)
	number(c, "exchange", &k.Exchange, optional)
	number(c, "answer_exchange", &k.AnswerExchange, optional)
	c.text("error", &k.Error, optional)
}

// IsNotification reports whether the message waits for no answer. A request of a conversation that has none says why.
func (k *MCPJSONRPC) IsNotification() bool {
	return strings.HasPrefix(k.Method, "notifications/") || k.Conversation > 0 && k.Answered == 0 && k.Error == ""
}

// IsCall reports whether a program asked a server for something: not to be told something, and not whether it is there.
func (k *MCPJSONRPC) IsCall() bool {
	switch k.Method {
	case "initialize", "server/discover", "ping":
		return false
	}
	return k.From != "server" && !k.IsNotification()
}

// MCPServer is the name of a server without what tells apart conversations with several of that name: "files" of "files#2".
func MCPServer(name string) string {
	at := strings.LastIndexByte(name, '#')
	if at <= 0 || at == len(name)-1 || strings.Trim(name[at+1:], "0123456789") != "" {
		return name
	}
	return name[:at]
}

// MCPOpen is the start of a conversation with an MCP server. It stands before every other record of the conversation.
type MCPOpen struct {
	Server       string
	Conversation uint64
	Transport    string   // "stdio" or "http"
	Program      string   // of stdio: what was executed
	Args         []string // of stdio: its arguments, without the program's name
	Env          []string // of stdio: NAME=VALUE that it was given beyond what the recorded program has, sorted, without secrets
	Cwd          string   // of stdio: its working directory; "" where it is not known
	URL          string   // of http: where the first request went
	Protocol     string   // the version that the server said the conversation speaks; "" where it said none
	Extra        []Field
}

// Name implements Kind.
func (*MCPOpen) Name() string { return "mcp_open" }

func (k *MCPOpen) extra() *[]Field { return &k.Extra }

func (k *MCPOpen) fields(c *codec) {
	c.text("server", &k.Server, optional)
	number(c, "conversation", &k.Conversation, optional)
	c.text("transport", &k.Transport, optional)
	c.text("program", &k.Program, optional)
	c.texts("args", &k.Args, optional)
	c.texts("env", &k.Env, optional)
	c.text("cwd", &k.Cwd, optional)
	c.text("url", &k.URL, optional)
	c.text("protocol", &k.Protocol, optional)
}

// MCPText is what came in a conversation with an MCP server and is no JSON-RPC message: a line that a server logged to stdout,
// the half of a line that it died in, or what it wrote to stderr.
type MCPText struct {
	Server       string
	Conversation uint64
	From         string   // "server", "client" or "stderr"
	Arrival      uint64   // place among all lines of the conversation; of stderr: that of the line before it
	Payload      *Payload // the bytes with the end of the line, redacted
	Extra        []Field
}

// Name implements Kind.
func (*MCPText) Name() string { return "mcp_text" }

func (k *MCPText) extra() *[]Field { return &k.Extra }

func (k *MCPText) fields(c *codec) {
	c.text("server", &k.Server, optional)
	number(c, "conversation", &k.Conversation, optional)
	c.text("from", &k.From, optional)
	number(c, "arrival", &k.Arrival, optional)
	c.payload("payload", &k.Payload, optional)
}

// MCPClose is the end of a conversation with an MCP server. It stands after every other record of the conversation.
type MCPClose struct {
	Server       string
	Conversation uint64
	Arrival      uint64 // how many lines the conversation had
	ExitCode     *int64 // of a server's process: 128+n on death by signal n; nil where it is not known
	Signal       string // "SIGTERM"; "" for none
	Error        string // why the conversation is not whole; "" where it is
	By           string // who ended it: "client" or "server"; "" where nobody did, or it is not known
	Extra        []Field
}

// Name implements Kind.
func (*MCPClose) Name() string { return "mcp_close" }

func (k *MCPClose) extra() *[]Field { return &k.Extra }

func (k *MCPClose) fields(c *codec) {
	c.text("server", &k.Server, optional)
	number(c, "conversation", &k.Conversation, optional)
	number(c, "arrival", &k.Arrival, optional)
	c.numberOrNull("exit_code", &k.ExitCode)
	c.text("signal", &k.Signal, optional)
	c.text("error", &k.Error, optional)
	c.text("by", &k.By, optional)
}
