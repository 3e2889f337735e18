package fidelity

import (
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// exchangeCategories are the codes of one of the two kinds that hold an exchange.
type exchangeCategories struct {
	method, url, requestHeaders, requestDigest, requestHash               Category
	status, responseHeaders, responseHash, stream, lane, arrival, failure Category
}

var (
	llmExchange = exchangeCategories{LLMMethod, LLMURL, LLMRequestHeaders, LLMRequestDigest, LLMRequestHash, LLMStatus,
		LLMResponseHeaders, LLMResponseHash, LLMStream, LLMLane, LLMArrival, LLMError}
	httpExchange = exchangeCategories{HTTPMethod, HTTPURL, HTTPRequestHeaders, HTTPRequestDigest, HTTPRequestHash,
		HTTPStatus, HTTPResponseHeaders, HTTPResponseHash, HTTPStream, HTTPLane, HTTPArrival, HTTPError}
)

func (d *differ) llmCall(a, b *tape.LLMCall) {
	same(d, LLMProvider, a.Provider, b.Provider)
	same(d, LLMEndpoint, a.Endpoint, b.Endpoint)
	same(d, LLMModel, a.Model, b.Model)
	if a.ParamsDigest != b.ParamsDigest {
		f := finding{category: LLMParamsDigest, a: &a.Exchange, b: &b.Exchange, part: params, was: a.RequestPayload, now: b.RequestPayload}
		d.hashed(f, a.ParamsDigest, b.ParamsDigest)
	}
	if !d.lanes {
		d.text(LLMMethod, a.Method, b.Method)
		d.text(LLMURL, a.URL, b.URL)
	}
	d.exchange(&llmExchange, &a.Exchange, &b.Exchange)
	if !d.lanes {
		d.json(LLMUsage, a.Usage, b.Usage) // a part of the answer
		same(d, LLMConnection, a.Connection, b.Connection)
	}
	same(d, LLMOpcode, a.Opcode, b.Opcode)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) httpExchange(a, b *tape.HTTPExchange) {
	d.text(HTTPMethod, a.Method, b.Method)
	d.text(HTTPURL, a.URL, b.URL)
	d.exchange(&httpExchange, &a.Exchange, &b.Exchange)
	if d.lanes && !d.exact && !racy(&a.Exchange, &b.Exchange) { // else the trailers compare as they stand
		d.callStatus(a, b)
	}
	d.extra(a.Extra, b.Extra)
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
	d.asked(c, a, b)
	if d.lanes && !d.exact && racy(a, b) {
		return
	}
	d.came(c, a, b)
	if !d.lanes {
		same(d, c.lane, a.Lane, b.Lane)
		sameExact(d, c.arrival, a.Arrival, b.Arrival)
	}
}

// asked compares what was asked for: it comes before what came of it, which may follow from it.
func (d *differ) asked(c *exchangeCategories, a, b *tape.Exchange) {
	d.requestDigest(c.requestDigest, a, b)
	if w, n := hashOf(a.RequestPayload), hashOf(b.RequestPayload); !d.lanes && w != n && a.RequestDigest == b.RequestDigest { // else it is said
		d.hashed(finding{category: c.requestHash, a: a, b: b, was: a.RequestPayload, now: b.RequestPayload}, w, n)
	}
	if !d.lanes || d.exact {
		d.headers(c.requestHeaders, a.RequestHeaders, b.RequestHeaders)
	}
}

// came compares what came of an exchange.
func (d *differ) came(c *exchangeCategories, a, b *tape.Exchange) {
	same(d, c.status, a.Status, b.Status)
	if w, n := hashOf(a.Response), hashOf(b.Response); w != n && !d.sameWords(c, a, b) {
		d.hashed(finding{category: c.responseHash, a: a, b: b, part: answer, was: a.Response, now: b.Response}, w, n)
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
	return c == &llmExchange && d.lanes && !d.exact && d.answersAlike != nil && d.answersAlike(a, b)
}

// requestDigest compares the digests of two requests; the bodies explain it.
func (d *differ) requestDigest(c Category, a, b *tape.Exchange) {
	if a.RequestDigest != b.RequestDigest && (d.reordered == nil || !d.reordered(a, b)) {
		f := finding{category: c, a: a, b: b, was: a.RequestPayload, now: b.RequestPayload}
		d.hashed(f, a.RequestDigest, b.RequestDigest)
	}
}

func (d *differ) wsOpen(a, b *tape.WSOpen) {
	d.text(WSOpenURL, a.URL, b.URL)
	same(d, WSOpenStatus, a.Status, b.Status)
	if !d.lanes {
		same(d, WSOpenConnection, a.Connection, b.Connection)
		same(d, WSOpenLane, a.Lane, b.Lane)
		sameExact(d, WSOpenArrival, a.Arrival, b.Arrival)
		d.headers(WSOpenRequestHeaders, a.RequestHeaders, b.RequestHeaders)
		d.headers(WSOpenResponseHeaders, a.ResponseHeaders, b.ResponseHeaders)
	}
	d.extra(a.Extra, b.Extra)
}

func (d *differ) wsMessage(a, b *tape.WSMessage) {
	if !d.lanes {
		same(d, WSMessageConnection, a.Connection, b.Connection)
	}
	same(d, WSMessageDirection, a.Direction, b.Direction)
	same(d, WSMessageOpcode, a.Opcode, b.Opcode)
	d.content(WSMessageHash, a, a.Payload, b.Payload)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) wsClose(a, b *tape.WSClose) {
	if !d.lanes {
		same(d, WSCloseConnection, a.Connection, b.Connection)
	}
	same(d, WSCloseCode, a.Code, b.Code)
	same(d, WSCloseReason, a.Reason, b.Reason)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) tlsRefused(a, b *tape.TLSRefused) {
	same(d, TLSRefusedHost, a.Host, b.Host)
	same(d, TLSRefusedPort, a.Port, b.Port)
	same(d, TLSRefusedReason, a.Reason, b.Reason)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) nameLookup(a, b *tape.NameLookup) {
	d.text(NameLookupHost, a.Host, b.Host)
	same(d, NameLookupType, a.Type, b.Type)
	same(d, NameLookupResult, a.Result, b.Result)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) netRefused(a, b *tape.NetRefused) {
	same(d, NetRefusedAddr, a.Addr, b.Addr)
	same(d, NetRefusedPort, a.Port, b.Port)
	same(d, NetRefusedReason, a.Reason, b.Reason)
	d.extra(a.Extra, b.Extra)
}
