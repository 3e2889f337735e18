package tape

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// Exchange is one HTTP request and its answer, as LLMCall and HTTPExchange hold it.
type Exchange struct {
	Method          string
	URL             string // absolute, scrubbed
	RequestHeaders  []HeaderField
	RequestDigest   cas.Digest // of the matchable surface (LLMCall), of the body (HTTPExchange)
	RequestPayload  *Payload   // the scrubbed body; nil for none
	Status          int        // 0 where no upstream answered
	ResponseHeaders []HeaderField
	Response        *Payload     // the scrubbed body; nil where no upstream answered
	Stream          []Chunk      // the chunks of Response, in order
	StreamExtra     []ChunkField // further keys of the chunks, in the order of the chunks; nil in tapes of ours
	Lane            string       // the conversation or host it belongs to
	Arrival         uint64       // order in which requests arrived, from 1; 0 where the tape has none
	Error           string       // what cut the exchange; "" for none
}

func (x *Exchange) walkRequest(c *codec) {
	c.text("method", &x.Method, optional)
	c.text("url", &x.URL, optional)
	c.headers("request_headers", &x.RequestHeaders)
}

func (x *Exchange) walkStatus(c *codec) {
	number(c, "status", &x.Status, optional)
	c.headers("response_headers", &x.ResponseHeaders)
}

func (x *Exchange) walkStream(c *codec) {
	c.chunks("stream", &x.Stream, &x.StreamExtra)
	c.text("lane", &x.Lane, optional)
	number(c, "arrival", &x.Arrival, optional)
	c.text("error", &x.Error, optional)
}

// A HeaderField is one header line.
type HeaderField struct {
	Name, Value string
}

// A Chunk is what one read of the upstream's body gave: Length bytes of the response at Offset, TMS ms after the request
// arrived. Its further keys stand in StreamExtra, for an answer may have hundreds of thousands of chunks.
type Chunk struct {
	Offset, Length int64
	TMS            int64
	G              uint64 // the recorder's global ordinal; 0 where the tape has none
}

// A ChunkField is a further key of one chunk, as it stood.
type ChunkField struct {
	Chunk int // the chunk's index in the stream
	Field
}

// LLMCall is one call of a model. A tape of another producer holds RequestDigest and Response alone. The format demands a
// response: nil is written as the empty payload, and Status 0 says that no upstream answered.
type LLMCall struct {
	Provider     string // "anthropic", "bedrock", "cohere", "gemini", "ollama" or "openai", by the API that was spoken
	Endpoint     string // "messages", "chat.completions", …
	Model        string
	ParamsDigest cas.Digest
	Usage        json.RawMessage // the provider's own usage object; nil for none
	Exchange
	Connection uint64 // of a turn in a WebSocket conversation: which; 0 for a request of its own
	Opcode     string // of such a turn: "binary" where its messages are not text
	Extra      []Field
}

// Name implements Kind.
func (*LLMCall) Name() string { return "llm_call" }

func (k *LLMCall) extra() *[]Field { return &k.Extra }

func (k *LLMCall) fields(c *codec) {
	c.hash("request_digest", &k.RequestDigest)
	c.payload("response", &k.Response, required)
	c.text("provider", &k.Provider, optional)
	c.text("endpoint", &k.Endpoint, optional)
	c.text("model", &k.Model, optional)
	c.digest("params_digest", &k.ParamsDigest, optional)
	c.json("usage", &k.Usage)
	k.walkRequest(c)
	c.payload("request_payload", &k.RequestPayload, optional)
	k.walkStatus(c)
	k.walkStream(c)
	number(c, "connection", &k.Connection, optional)
	c.text("opcode", &k.Opcode, optional)
}

// HTTPExchange is any other HTTP request and its answer.
type HTTPExchange struct {
	Exchange
	Extra []Field
}

// Name implements Kind.
func (*HTTPExchange) Name() string { return "http_exchange" }

func (k *HTTPExchange) extra() *[]Field { return &k.Extra }

func (k *HTTPExchange) fields(c *codec) {
	k.walkRequest(c)
	c.digest("request_digest", &k.RequestDigest, optional)
	c.payload("request_payload", &k.RequestPayload, optional)
	k.walkStatus(c)
	c.payload("response", &k.Response, optional)
	k.walkStream(c)
}

// ExchangeOf returns the exchange that a kind holds, which may be changed in place; nil for a kind that holds none.
func ExchangeOf(k Kind) *Exchange {
	switch k := k.(type) {
	case *LLMCall:
		return &k.Exchange
	case *HTTPExchange:
		return &k.Exchange
	}
	return nil
}

// FileOf returns the file that a kind is about (file_read, file_write, file_delete), which may be changed in place; nil for a kind that
// is about none.
func FileOf(k Kind) *File {
	if r, ok := k.(*FileRead); ok {
		return &r.File
	}
	return ChangedFile(k)
}

// ChangedFile is FileOf of the kinds that change a file: file_write and file_delete.
func ChangedFile(k Kind) *File {
	switch k := k.(type) {
	case *FileWrite:
		return &k.File
	case *FileDelete:
		return &k.File
	}
	return nil
}

// ServerOf returns the name of the MCP server that a kind belongs to, which may be changed in place; nil for a kind that is no mcp_*.
func ServerOf(k Kind) *string {
	switch k := k.(type) {
	case *MCPOpen:
		return &k.Server
	case *MCPJSONRPC:
		return &k.Server
	case *MCPText:
		return &k.Server
	case *MCPClose:
		return &k.Server
	}
	return nil
}

// HostOf returns the host of a URL as lanes name it: in lower case, with its port where the URL names one; "" for
// text that names none.
func HostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// Errors of an Exchange that say what the program did. Whoever compares two tapes must know them.
const (
	// Cancelled is the Error of an exchange that the program itself ended before its answer did.
	Cancelled = "the program ended the request"
	// HeldOn is the Error of a replayed exchange that was recorded as Cancelled and that the program, for all the time it was
	// given, did not end.
	HeldOn = "the program did not end the request, as it had while recording"
)

// TelemetryLane begins the lanes of requests that report what a program measured; the host follows. They never gate.
const TelemetryLane = "telemetry:"

// IsTelemetry reports whether x stands in such a lane.
func (x *Exchange) IsTelemetry() bool { return strings.HasPrefix(x.Lane, TelemetryLane) }

// UpgradeRefused reports whether x is a request for another protocol, as a WebSocket begins, that the recorder did not carry:
// it answered 426 by itself. No upstream is asked for one, so nobody else answered so.
func (x *Exchange) UpgradeRefused() bool {
	return x.Status == http.StatusUpgradeRequired && slices.ContainsFunc(x.RequestHeaders, func(f HeaderField) bool {
		return strings.EqualFold(f.Name, "Upgrade")
	})
}
