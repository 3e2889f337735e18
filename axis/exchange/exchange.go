package exchange

import (
	"context"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
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

// HTTPIdentity is that of plain HTTP: url is masked, and surface what compares of the body.
func HTTPIdentity(method, url string, surface []byte) *Identity {
	return &Identity{Key: Key{Kind: HTTP, Method: method, URL: url, Request: cas.Sum(surface)}, Surface: surface}
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
	// InCallOrder returns a call of a model with the results of calls of one turn in the order of these calls; nil where there are no two.
	InCallOrder(r *Request) *Request
	// Sockets returns what follows the messages of a socket that was opened by r, scrubbed, whose URL begins with ws:// or wss://;
	// nil where nothing is known of it. It is asked once a socket, in recording and on replay.
	Sockets(r *Request) Turns
	// Rename returns a message of a socket with other ids in the place of those that masks take out of it: what to returns for one, which
	// stays where that is "".
	Rename(message []byte, to func(id string) string) []byte
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
	return method == http.MethodGet && HasToken(h, "Upgrade", "websocket")
}

// cleaned is a request without its secrets, in the two forms that it is needed in.
type cleaned struct {
	request *Request           // decoded: what a Classifier is given
	headers []tape.HeaderField // as they stand on the tape
	stored  []byte             // the body as it stands on the tape; nil for none
	extra   []tape.Field
	plain   []byte        // the body as the program sent it, decoded; as it came where it does not decode
	named   []scrub.Named // what names in the body gave away
	flow    []scrub.Named // and what the query did, as part of an OAuth flow
}

// shared reports whether p is the payload of body, and is in the store to now.
func shared(p *tape.Payload, body []byte, to, from cas.Store) bool {
	switch {
	case p == nil || p.Len != int64(len(body)):
		return false
	case p.Inline:
		return p.Text == string(body)
	}
	return p.Hash == cas.Sum(body) && cas.Copy(to, from, p.Hash) == nil
}

// Conversations follows conversations that lie across exchanges: one whose requests are POSTs, and whose messages come in the answers of
// these and of others (package mcp follows MCP's). It may be used by several goroutines at once.
type Conversations interface {
	// Begin is told of a request: while recording before it is sent on, on a replay when it is known what answers it. The
	// Passage that it returns is told of the answer; nil where the exchange carries no conversation. An error is the recorder's, which
	// has ended.
	Begin(a *Asked) (Passage, error)
}

// Asked is a request as Conversations is told of it.
type Asked struct {
	Request  *Request // as the program sent it, secrets and all, but for the Content-Encoding of its body
	Identity *Identity
	Arrival  uint64
	// Recorded is on a replay the exchange that answers it; nil while recording, and where nothing on the tape does: Refused
	// then says why.
	Recorded *Recorded
	Refused  string
}

// A Passage is told of one answer, by one goroutine at a time: Head, Chunk as often as bytes come, End and Close.
type Passage interface {
	// Known reports whether the exchange is known to carry a conversation before its answer came: of a GET for events it may turn
	// out only then, and until then it is an exchange as any other.
	Known() bool
	// Answer is what the program gets whose request nothing on the tape answers; ok is false where that is nothing special.
	// It is asked on a replay alone, before Head.
	Answer() (a *OwnAnswer, ok bool)
	// Between is given, once the head has passed, how to put bytes on the answer between what two calls of Chunk return, until Close.
	Between(say Between)
	// Head is told of the head of the answer before it is passed on. What it changes in h the program gets, and no tape holds.
	Head(status int, h http.Header) error
	// Chunk is given what one read of the answer gave, as the program would get it, and returns what it gets instead, each piece
	// as a chunk of its own: b itself while recording. On a replay it may wait for what the program had sent by then, and hold
	// bytes back until more come; ended says that these are the last. An error is the recorder's, or ctx's.
	Chunk(ctx context.Context, b []byte, ended bool) ([][]byte, error)
	// Passed is told that the program has what Chunk returned.
	Passed()
	// End is told that the answer ended, before its record is written: with "", or with what cut it. It returns the lane that the
	// record stands in; "" leaves that as it is.
	End(errText string) (lane string, err error)
	// Close is the last call: nothing more passes.
	Close()
}

// A Live is a Passage whose conversation may go on with its server itself, past the point of a Fork.
type Live interface {
	Passage
	// Send is what the server answers to the request, past the point; not ok where nothing but the request itself is to be sent.
	Send(ctx context.Context, send Sender) (res *http.Response, ok bool, err error)
	// GoOn is a recorded body that goes on past the point with what the server says; nil where it does not.
	GoOn(recorded Body, send Sender) Body
}

// A Sender sends a request to its upstream.
type Sender func(ctx context.Context, r *Request) (*http.Response, error)

// A Body gives an answer's chunks.
type Body interface {
	// Next returns the next chunk, valid until the next call. Its error comes with the chunk or after it: io.EOF at the
	// end, any other where the answer was cut.
	Next(ctx context.Context) ([]byte, error)
	// Close frees what the body holds.
	Close() error
}

// Between passes bytes on that no tape holds. The error says that the program does not get them.
type Between func(b []byte) error

// An OwnAnswer is one that no tape holds.
type OwnAnswer struct {
	Status int
	Header http.Header
	Body   []byte
	// Passes says that it is no divergence of the program that it asked.
	Passes bool
}
