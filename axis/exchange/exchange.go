package exchange

import (
	"net/http"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Request is one HTTP request as the program sent it.
type Request struct {
	Method string
	URL    string // absolute: scheme, host (with its port where it is not the scheme's own), path, query
	Header http.Header
	Body   []byte // as sent, Content-Encoding and all
	// Asker is, while recording, the number of the conversation of the MCP server that asks (tape.ConversationKey); 0 for the program.
	Asker uint64
	// Opener is the number of the process, or of the thread with times of its own, that opened the connection (tape.OpenerKey); 0
	// where that is not known.
	Opener uint64
	// Came is the ordinal at which the program meant to ask, where that is known: it connected then. 0 stands for now.
	Came uint64
}

// Kind says what a request is.
type Kind uint8

// The kinds of exchange.
const (
	HTTP Kind = iota // plain HTTP: key is method, URL and body
	LLM              // a call of a model: key is provider, endpoint, model, params and matchable surface
)

// A Key is what must be equal for a recorded answer to serve a request.
type Key struct {
	Kind                      Kind
	Socket                    bool       // asked for a WebSocket, or asked over one
	Stream                    bool       // answered while it still came: Request is that of its first message
	Provider, Endpoint, Model string     // of LLM
	Params                    cas.Digest // of LLM
	Method, URL               string     // of HTTP; URL renumbered and masked
	Request                   cas.Digest // of the matchable surface (LLM), of the body (HTTP)
}

// An Identity is what a Classifier found out about a request.
type Identity struct {
	Key Key
	// Talk says which conversation with a model the request belongs to; nil for HTTP. It hashes every message, and is asked
	// where a lane is to be found alone.
	Talk func() Talk
	// Surface is what Key.Request is the digest of, renumbered and masked: the canonical JSON of the matchable surface, or
	// the body of plain HTTP. Params is the same to Key.Params, nil for HTTP. A divergence is explained with them.
	Surface, Params []byte
	// Usage takes the provider's usage object out of a whole answer (decoded from its Content-Encoding); nil for none.
	Usage func(contentType string, body []byte) []byte
	// ErrorBody is the provider's own error object around a message; nil where no provider is known, which gets
	// {"error":{…}}.
	ErrorBody func(status int, message string) []byte
}

// A Talk is what a call of a model shows of its conversation.
type Talk struct {
	Opening cas.Digest   // of the system text and the first user message, masked
	Turns   []cas.Digest // one a message, masked, in order: what tells a conversation from its double
}

// A Classifier identifies requests. What it is given has been scrubbed and decoded (no Content-Encoding); it masks
// before it takes digests.
type Classifier interface {
	Classify(r *Request) (*Identity, error)
	// MaskURL returns a scrubbed URL in the form that Key.URL holds.
	MaskURL(scrubbed string) string
	// Traits returns what tells a request from others of its Key. It is asked only where a tape holds several.
	Traits(r *Request) *Traits
}

// KeyOf is the key of a record of the kind k; the zero Key where it holds no exchange.
func KeyOf(k tape.Kind, c Classifier) Key {
	switch k := k.(type) {
	case *tape.LLMCall:
		return Key{
			Kind: LLM, Provider: k.Provider, Endpoint: k.Endpoint, Model: k.Model,
			Params: k.ParamsDigest, Request: k.RequestDigest, Socket: k.Connection != 0,
		}
	case *tape.HTTPExchange:
		key := Key{Kind: HTTP, Method: k.Method, URL: c.MaskURL(k.URL), Request: k.RequestDigest}
		key.Socket = AsksSocket(k.Method, HeaderOf(k.RequestHeaders))
		return key
	}
	return Key{}
}

// AsksSocket reports whether a request asks for a WebSocket (RFC 6455, 4.1).
func AsksSocket(method string, h http.Header) bool {
	if method != http.MethodGet {
		return false
	}
	for _, list := range h["Upgrade"] {
		for item := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(item), "websocket") {
				return true
			}
		}
	}
	return false
}

// A Recorded is one exchange of a tape, as a Book hands it out.
type Recorded struct {
	Key      Key
	Seq      uint64 // of its record
	Lane     string
	Arrival  uint64
	Exchange *tape.Exchange  // of a socket, what its ws_open says, with the status 101
	Socket   *RecordedSocket // nil for what is no socket
	// Length is the Content-Length of the answer where the stored bytes are not as many; -1 where it had none, or where that
	// stands in the header.
	Length int64
	// Trailers are the fields that came behind the body; nil for none.
	Trailers http.Header

	endedMS int64     // when it ended, in ms since the run began that recorded it
	wallMS  int64     // the same, in Unix epoch ms
	begunMS int64     // when its request came, or later; see keepCompany
	g       uint64    // of its record
	company *company  // nil for none
	order   *endOrder // of conversations that went on beside its own; nil for none
	opcode  int       // of a turn over a socket: of the server's messages
	ownTurn bool      // of a turn over a socket: the server began it

	extra []tape.Field // the further keys of its record

	after []int // how far the request had come (keyAfter); nil where all of it came before the answer

	usage  []byte         // of a model, as JSON; nil for none
	traits *Traits        // of the request; nil before its queue was studied
	own    map[trait]bool // of traits, what others of the queue have not; nil where it has none, and before
	served bool           // guarded by the Book
}
