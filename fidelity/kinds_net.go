package fidelity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// exchangeCategories are the codes of one of the two kinds that hold an exchange.
type exchangeCategories struct {
	requestHeaders, requestDigest, requestHash                            Category
	status, responseHeaders, responseHash, stream, lane, arrival, failure Category
}

var (
	llmExchange = exchangeCategories{LLMRequestHeaders, LLMRequestDigest, LLMRequestHash, LLMStatus,
		LLMResponseHeaders, LLMResponseHash, LLMStream, LLMLane, LLMArrival, LLMError}
	httpExchange = exchangeCategories{HTTPRequestHeaders, HTTPRequestDigest, HTTPRequestHash,
		HTTPStatus, HTTPResponseHeaders, HTTPResponseHash, HTTPStream, HTTPLane, HTTPArrival, HTTPError}
)

func (d *differ) llmCall(a, b *tape.LLMCall) {
	same(d, LLMProvider, a.Provider, b.Provider)
	same(d, LLMEndpoint, a.Endpoint, b.Endpoint)
	same(d, LLMModel, a.Model, b.Model)
	if a.ParamsDigest != b.ParamsDigest {
		f := finding{category: LLMParamsDigest, a: &a.Exchange, b: &b.Exchange, part: ofParams, was: a.RequestPayload, now: b.RequestPayload}
		d.hashed(f, a.ParamsDigest, b.ParamsDigest)
	}
	if !d.lanes {
		d.text(LLMMethod, a.Method, b.Method)
		d.text(LLMURL, a.URL, b.URL)
	}
	d.urlPart(LLMURL, &a.Exchange, &b.Exchange)
	d.exchange(&llmExchange, &a.Exchange, &b.Exchange)
	if !d.lanes {
		d.json(LLMUsage, a.Usage, b.Usage) // a part of the answer
		same(d, LLMConnection, a.Connection, b.Connection)
	}
	same(d, LLMOpcode, a.Opcode, b.Opcode)
}

func (d *differ) httpExchange(a, b *tape.HTTPExchange) {
	d.text(HTTPMethod, a.Method, b.Method)
	d.text(HTTPURL, a.URL, b.URL)
	d.urlPart(HTTPURL, &a.Exchange, &b.Exchange)
	d.exchange(&httpExchange, &a.Exchange, &b.Exchange)
	if d.lanes && !d.exact && !racy(&a.Exchange, &b.Exchange) { // else the trailers compare as they stand
		d.callStatus(a, b)
	}
}

// urlPart says where two URLs differ, of which a mask alone need not take out all: keys that say nothing are not matched.
func (d *differ) urlPart(c Category, a, b *tape.Exchange) {
	f := textFacet("URL", c, a.URL, b.URL)
	f.besides = NotMatched
	d.mayHide(f)
}

// callStatus compares how two gRPC calls ended. Their messages are for people, and explain.
func (d *differ) callStatus(a, b *tape.HTTPExchange) {
	if was, now := grpcstatus.Of(a), grpcstatus.Of(b); was.Code != now.Code {
		d.add(HTTPStatus, bodies.Shorten(was.String()), bodies.Shorten(now.String()))
	}
}

// exchange compares what model calls and plain HTTP share. In lane mode the digest stands for the request, and headers
// and the cut of chunks, which every run gives anew, only count byte by byte, and so does what came of an exchange that the
// program itself ended.
func (d *differ) exchange(c *exchangeCategories, a, b *tape.Exchange) {
	d.requested(c, a, b)
	if d.lanes && !d.exact && racy(a, b) {
		return
	}
	d.answered(c, a, b)
	if !d.lanes {
		same(d, c.lane, a.Lane, b.Lane)
		sameExact(d, c.arrival, a.Arrival, b.Arrival)
	}
}

// requested compares what was asked for: it comes before what came of it, which may follow from it.
func (d *differ) requested(c *exchangeCategories, a, b *tape.Exchange) {
	d.requestDigest(c.requestDigest, a, b)
	if w, n := hashOf(a.RequestPayload), hashOf(b.RequestPayload); !d.lanes && w != n && a.RequestDigest == b.RequestDigest { // else it is said
		d.hashed(finding{category: c.requestHash, a: a, b: b, was: a.RequestPayload, now: b.RequestPayload}, w, n)
	}
	if !d.lanes || d.exact {
		d.headers(c.requestHeaders, a.RequestHeaders, b.RequestHeaders)
	}
}

// answered compares what came of an exchange.
func (d *differ) answered(c *exchangeCategories, a, b *tape.Exchange) {
	same(d, c.status, a.Status, b.Status)
	f := finding{category: c.responseHash, a: a, b: b, part: ofAnswer, was: a.Response, now: b.Response}
	if w, n := hashOf(a.Response), hashOf(b.Response); w != n && !d.sameWords(c, a, b) {
		d.hashed(f, w, n)
	}
	if c == &llmExchange && !d.exact {
		d.mayHide(facet{finding: f, place: "answer", besides: AnswerIDs})
	}
	d.text(c.failure, a.Error, b.Error)
	if !d.lanes || d.exact {
		d.headers(c.responseHeaders, a.ResponseHeaders, b.ResponseHeaders)
		d.chunks(c.stream, a.Stream, b.Stream)
		d.chunkFields(a.StreamExtra, b.StreamExtra)
	}
}

// sameWords reports whether the answers of two model calls differ in nothing but what their provider made up.
func (d *differ) sameWords(c *exchangeCategories, a, b *tape.Exchange) bool {
	return c == &llmExchange && d.lanes && !d.exact && d.models != nil && d.models.answersAlike(a, b)
}

// requestDigest compares the digests of two requests; the bodies explain it.
func (d *differ) requestDigest(c Category, a, b *tape.Exchange) {
	if a.RequestDigest != b.RequestDigest && d.models != nil && d.models.resultsReordered(a, b) {
		return
	}
	f := finding{category: c, a: a, b: b, was: a.RequestPayload, now: b.RequestPayload}
	d.hashedAt(facet{finding: f, besides: NotMatched}, a.RequestDigest, b.RequestDigest)
}

func (d *differ) wsOpen(a, b *tape.WSOpen) {
	d.textAt("URL", WSOpenURL, a.URL, b.URL)
	same(d, WSOpenStatus, a.Status, b.Status)
	if !d.lanes {
		same(d, WSOpenConnection, a.Connection, b.Connection)
		same(d, WSOpenLane, a.Lane, b.Lane)
		sameExact(d, WSOpenArrival, a.Arrival, b.Arrival)
		d.headers(WSOpenRequestHeaders, a.RequestHeaders, b.RequestHeaders)
		d.headers(WSOpenResponseHeaders, a.ResponseHeaders, b.ResponseHeaders)
	}
}

func (d *differ) wsMessage(a, b *tape.WSMessage) {
	sameInPlace(d, WSMessageConnection, a.Connection, b.Connection)
	same(d, WSMessageDirection, a.Direction, b.Direction)
	same(d, WSMessageOpcode, a.Opcode, b.Opcode)
	d.content("", WSMessageHash, a, a.Payload, b.Payload)
}

// What Error of an mcp_json_rpc says of a request that got no answer; anything else is why the recorder refused it. Where the
// request side did not wait for the answer, whether it had come by then is a matter of moments.
const (
	mcpCancelled     = "cancelled"
	mcpClientEnded   = "client ended"
	mcpServerEnded   = "server ended"
	mcpRecorderEnded = "recorder ended"
	mcpAnswerLost    = "the answer was too long to be kept"
)

// mcp compares two messages to a tool server and what came of them: by position every field, between lanes what recording.md
// says two runs share.
func (d *differ) mcp(a, b *tape.MCPJSONRPC) {
	if d.lanes {
		d.mcpInLane(a, b)
	} else {
		d.mcpInPlace(a, b)
	}
}

func (d *differ) mcpInPlace(a, b *tape.MCPJSONRPC) {
	same(d, MCPServer, a.Server, b.Server)
	same(d, MCPMethod, a.Method, b.Method)
	same(d, MCPRequestDigest, a.RequestDigest, b.RequestDigest)
	same(d, MCPResponseDigest, a.ResponseDigest, b.ResponseDigest)
	d.callPart(MCPRequestHash, a, b, hashOf(a.Request), hashOf(b.Request))
	d.callPart(MCPResponseHash, a, b, hashOf(a.Response), hashOf(b.Response))
	sameExact(d, MCPLatency, a.LatencyMS, b.LatencyMS)
	same(d, MCPFrom, fromOf(a), fromOf(b))
	same(d, MCPConversation, a.Conversation, b.Conversation)
	same(d, MCPTransport, a.Transport, b.Transport)
	sameExact(d, MCPArrival, a.Arrival, b.Arrival)
	sameExact(d, MCPAnswered, a.Answered, b.Answered)
	same(d, MCPParamsDigest, a.ParamsDigest, b.ParamsDigest)
	same(d, MCPResultDigest, a.ResultDigest, b.ResultDigest)
	sameExact(d, MCPExchange, a.Exchange, b.Exchange)
	sameExact(d, MCPAnswerExchange, a.AnswerExchange, b.AnswerExchange)
	same(d, MCPError, a.Error, b.Error)
}

// mcpInLane compares what a digest stands for by that alone. A request that nothing answered on the replay was answered by the
// recorder: what it said is no finding beside the request that differs.
func (d *differ) mcpInLane(a, b *tape.MCPJSONRPC) {
	if !d.renamed {
		same(d, MCPServer, tape.MCPServer(a.Server), tape.MCPServer(b.Server))
	}
	same(d, MCPMethod, a.Method, b.Method)
	same(d, MCPFrom, fromOf(a), fromOf(b))
	was, now := requestDigests(a, b)
	d.callPart(MCPRequestDigest, a, b, was, now)
	if refusedCall(b) && !refusedCall(a) {
		if was == now { // as it was recorded, and yet not answered
			d.text(MCPError, a.Error, b.Error)
		}
		return
	}
	if !d.exact && hasty(a, b) {
		return
	}
	was, now = answerDigests(a, b)
	d.callPart(MCPResponseDigest, a, b, was, now)
	d.text(MCPError, a.Error, b.Error)
	sameExact(d, MCPLatency, a.LatencyMS, b.LatencyMS)
}

// callPart adds a finding about one half of two messages whose digests or hashes differ.
func (d *differ) callPart(c Category, a, b *tape.MCPJSONRPC, was, now cas.Digest) {
	f := facet{finding: finding{category: c, message: a, was: a.Request, now: b.Request}}
	if c == MCPResponseHash || c == MCPResponseDigest {
		f.place, f.part, f.was, f.now = "answer", ofAnswer, a.Response, b.Response
	}
	d.hashedAt(f, was, now)
}

// requestDigests is what two requests compare by: the digests of their parameters where both have them, else those of their bytes.
func requestDigests(a, b *tape.MCPJSONRPC) (was, now cas.Digest) {
	if bothMasked(a, b) {
		return a.ParamsDigest, b.ParamsDigest
	}
	return a.RequestDigest, b.RequestDigest
}

// answerDigests is requestDigests for answers. One that never came has no digest of a result.
func answerDigests(a, b *tape.MCPJSONRPC) (was, now cas.Digest) {
	if bothMasked(a, b) {
		return a.ResultDigest, b.ResultDigest
	}
	return a.ResponseDigest, b.ResponseDigest
}

func bothMasked(a, b *tape.MCPJSONRPC) bool {
	return !a.ParamsDigest.IsZero() && !b.ParamsDigest.IsZero()
}

// hasty reports whether what came of two calls says nothing, for the request side of one did not wait for it.
func hasty(a, b *tape.MCPJSONRPC) bool { return impatient(a) || impatient(b) }

func impatient(k *tape.MCPJSONRPC) bool { return k.Error == mcpCancelled || k.Error == mcpClientEnded }

// refusedCall reports whether nothing on the tape answered a request of the client: the recorder did.
func refusedCall(k *tape.MCPJSONRPC) bool {
	switch k.Error {
	case "", mcpCancelled, mcpClientEnded, mcpServerEnded, mcpRecorderEnded, mcpAnswerLost:
		return false
	}
	return fromOf(k) == fromClient
}

// The sides of a conversation, as From holds them.
const (
	fromClient = "client"
	fromServer = "server"
	fromStderr = "stderr"
)

func fromOf(k *tape.MCPJSONRPC) string { return cmp.Or(k.From, fromClient) }

func (d *differ) mcpOpen(a, b *tape.MCPOpen) {
	switch {
	case !d.lanes:
		same(d, MCPOpenServer, a.Server, b.Server)
	case !d.renamed:
		same(d, MCPOpenServer, tape.MCPServer(a.Server), tape.MCPServer(b.Server))
	}
	sameInPlace(d, MCPOpenConversation, a.Conversation, b.Conversation)
	same(d, MCPOpenTransport, a.Transport, b.Transport)
	d.textAt("program", MCPOpenProgram, a.Program, b.Program)
	if !slices.EqualFunc(a.Args, b.Args, func(x, y string) bool { return x == y || d.masked(x) == d.masked(y) }) {
		d.argList(MCPOpenArgs, a.Args, b.Args)
	}
	d.argParts(MCPOpenArgs, a.Args, b.Args)
	if !slices.EqualFunc(a.Env, b.Env, func(x, y string) bool { return x == y || d.masked(x) == d.masked(y) }) {
		d.argList(MCPOpenEnv, a.Env, b.Env)
	}
	for i := range min(len(a.Env), len(b.Env)) {
		name, _, _ := strings.Cut(a.Env[i], "=")
		d.mayHide(textFacet("variable "+name, MCPOpenEnv, a.Env[i], b.Env[i]))
	}
	d.textAt("working directory", MCPOpenCwd, a.Cwd, b.Cwd)
	d.textAt("URL", MCPOpenURL, a.URL, b.URL)
	same(d, MCPOpenProtocol, a.Protocol, b.Protocol)
}

func (d *differ) mcpText(a, b *tape.MCPText) {
	if !d.lanes {
		same(d, MCPTextServer, a.Server, b.Server)
		same(d, MCPTextConversation, a.Conversation, b.Conversation)
		sameExact(d, MCPTextArrival, a.Arrival, b.Arrival)
	}
	same(d, MCPTextFrom, a.From, b.From)
	d.content("text", MCPTextHash, a, a.Payload, b.Payload)
}

func (d *differ) mcpClose(a, b *tape.MCPClose) {
	if !d.lanes {
		same(d, MCPCloseServer, a.Server, b.Server)
		same(d, MCPCloseConversation, a.Conversation, b.Conversation)
		sameExact(d, MCPCloseArrival, a.Arrival, b.Arrival)
		same(d, MCPCloseBy, a.By, b.By)
	}
	if was, now := numberOrUnknown(a.ExitCode), numberOrUnknown(b.ExitCode); was != now {
		d.add(MCPCloseExitCode, was, now)
	}
	same(d, MCPCloseSignal, a.Signal, b.Signal)
	d.text(MCPCloseError, a.Error, b.Error)
}

func numberOrUnknown(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return show(*n)
}

// content compares what two messages of a conversation hold. of is the recorded one.
func (d *differ) content(place string, c Category, of tape.Kind, was, now *tape.Payload) {
	d.hashedAt(facet{place: place, finding: finding{category: c, was: was, now: now, message: of}}, hashOf(was), hashOf(now))
}
