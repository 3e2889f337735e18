package fidelity

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func (d *differ) llmCall(a, b *tape.LLMCall) {
	same(d, "provider", a.Provider, b.Provider)
	same(d, "endpoint", a.Endpoint, b.Endpoint)
	same(d, "model", a.Model, b.Model)
	if a.ParamsDigest != b.ParamsDigest {
		f := finding{category: "params_digest", a: &a.Exchange, b: &b.Exchange, part: ofParams, was: a.RequestPayload, now: b.RequestPayload}
		d.hashed(f, a.ParamsDigest, b.ParamsDigest)
	}
	if !d.lanes {
		d.text("method", a.Method, b.Method)
		d.text("url", a.URL, b.URL)
	}
	d.urlPart("url", &a.Exchange, &b.Exchange)
	d.exchange(&a.Exchange, &b.Exchange)
	if !d.lanes {
		same(d, "usage", string(a.Usage), string(b.Usage)) // a part of the answer
		same(d, "connection", a.Connection, b.Connection)
	}
	same(d, "opcode", a.Opcode, b.Opcode)
}

func (d *differ) httpExchange(a, b *tape.HTTPExchange) {
	d.text("method", a.Method, b.Method)
	d.text("url", a.URL, b.URL)
	d.urlPart("url", &a.Exchange, &b.Exchange)
	d.exchange(&a.Exchange, &b.Exchange)
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
		d.add("status", was.String(), now.String())
	}
}

// exchange compares what model calls and plain HTTP share. In lane mode the digest stands for the request, and headers
// and the cut of chunks, which every run gives anew, only count byte by byte, and so does what came of an exchange that the
// program itself ended.
func (d *differ) exchange(a, b *tape.Exchange) {
	d.requested(a, b)
	if d.lanes && !d.exact && racy(a, b) {
		return
	}
	d.answered(a, b)
	if !d.lanes {
		same(d, "lane", a.Lane, b.Lane)
		sameExact(d, "arrival", a.Arrival, b.Arrival)
	}
}

// requested compares what was asked for: it comes before what came of it, which may follow from it.
func (d *differ) requested(a, b *tape.Exchange) {
	d.requestDigest(a, b)
	if w, n := hashOf(a.RequestPayload), hashOf(b.RequestPayload); !d.lanes && w != n && a.RequestDigest == b.RequestDigest { // else it is said
		d.hashed(finding{category: "request_hash", a: a, b: b, was: a.RequestPayload, now: b.RequestPayload}, w, n)
	}
	if !d.lanes || d.exact {
		d.headers("request_headers", a.RequestHeaders, b.RequestHeaders)
	}
}

// answered compares what came of an exchange.
func (d *differ) answered(a, b *tape.Exchange) {
	same(d, "status", a.Status, b.Status)
	f := finding{category: "response_hash", a: a, b: b, part: ofAnswer, was: a.Response, now: b.Response}
	if w, n := hashOf(a.Response), hashOf(b.Response); w != n && !d.sameWords(a, b) {
		d.hashed(f, w, n)
	}
	if d.prefix == ofModels && !d.exact {
		d.mayHide(facet{finding: f, place: "answer", besides: AnswerIDs})
	}
	d.text("error", a.Error, b.Error)
	if !d.lanes || d.exact {
		d.headers("response_headers", a.ResponseHeaders, b.ResponseHeaders)
		d.chunks("stream", a.Stream, b.Stream)
	}
}

// sameWords reports whether the answers of two model calls differ in nothing but what their provider made up.
func (d *differ) sameWords(a, b *tape.Exchange) bool {
	return d.prefix == ofModels && d.lanes && !d.exact && d.models != nil && d.models.answersAlike(a, b)
}

// requestDigest compares the digests of two requests; the bodies explain it.
func (d *differ) requestDigest(a, b *tape.Exchange) {
	if a.RequestDigest != b.RequestDigest && d.models != nil && d.models.resultsReordered(a, b) {
		return
	}
	f := finding{category: "request_digest", a: a, b: b, was: a.RequestPayload, now: b.RequestPayload}
	d.hashedAt(facet{finding: f, besides: NotMatched}, a.RequestDigest, b.RequestDigest)
}

func (d *differ) wsOpen(a, b *tape.WSOpen) {
	d.textAt("URL", "url", a.URL, b.URL)
	same(d, "status", a.Status, b.Status)
	if !d.lanes {
		same(d, "connection", a.Connection, b.Connection)
		same(d, "lane", a.Lane, b.Lane)
		sameExact(d, "arrival", a.Arrival, b.Arrival)
		d.headers("request_headers", a.RequestHeaders, b.RequestHeaders)
		d.headers("response_headers", a.ResponseHeaders, b.ResponseHeaders)
	}
}

func (d *differ) wsMessage(a, b *tape.WSMessage) {
	sameInPlace(d, "connection", a.Connection, b.Connection)
	same(d, "direction", a.Direction, b.Direction)
	same(d, "opcode", a.Opcode, b.Opcode)
	d.content("", "hash", a, a.Payload, b.Payload)
}

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
	same(d, "server", a.Server, b.Server)
	same(d, "method", a.Method, b.Method)
	same(d, "request_digest", a.RequestDigest, b.RequestDigest)
	same(d, "response_digest", a.ResponseDigest, b.ResponseDigest)
	d.callPart("request_hash", a, b, hashOf(a.Request), hashOf(b.Request))
	d.callPart("response_hash", a, b, hashOf(a.Response), hashOf(b.Response))
	sameExact(d, "latency", a.LatencyMS, b.LatencyMS)
	same(d, "from", fromOf(a), fromOf(b))
	same(d, "conversation", a.Conversation, b.Conversation)
	same(d, "transport", a.Transport, b.Transport)
	sameExact(d, "arrival", a.Arrival, b.Arrival)
	sameExact(d, "answered", a.Answered, b.Answered)
	same(d, "params_digest", a.ParamsDigest, b.ParamsDigest)
	same(d, "result_digest", a.ResultDigest, b.ResultDigest)
	sameExact(d, "exchange", a.Exchange, b.Exchange)
	sameExact(d, "answer_exchange", a.AnswerExchange, b.AnswerExchange)
	same(d, "error", a.Error, b.Error)
}

// mcpInLane compares what a digest stands for by that alone. A request that nothing answered on the replay was answered by the
// recorder: what it said is no finding beside the request that differs.
func (d *differ) mcpInLane(a, b *tape.MCPJSONRPC) {
	if !d.renamed {
		same(d, "server", tape.MCPServer(a.Server), tape.MCPServer(b.Server))
	}
	same(d, "method", a.Method, b.Method)
	same(d, "from", fromOf(a), fromOf(b))
	was, answer, now, answerNow := sharedDigests(a, b)
	d.callPart("request_digest", a, b, was, now)
	if refusedCall(b) && !refusedCall(a) {
		if was == now { // as it was recorded, and yet not answered
			d.text("error", a.Error, b.Error)
		}
		return
	}
	if !d.exact && (impatient(a) || impatient(b)) { // what came of them says nothing
		return
	}
	d.callPart("response_digest", a, b, answer, answerNow)
	d.text("error", a.Error, b.Error)
	sameExact(d, "latency", a.LatencyMS, b.LatencyMS)
}

// callPart adds a finding about one half of two messages whose digests or hashes differ.
func (d *differ) callPart(c Category, a, b *tape.MCPJSONRPC, was, now cas.Digest) {
	f := facet{finding: finding{category: c, message: a, was: a.Request, now: b.Request}}
	if c == "response_hash" || c == "response_digest" {
		f.place, f.part, f.was, f.now = "answer", ofAnswer, a.Response, b.Response
	}
	d.hashedAt(f, was, now)
}

// sharedDigests are what two messages and their answers compare by: the digests of parameters and results where both have them, else those
// of their bytes. An answer that never came has no digest of a result.
func sharedDigests(a, b *tape.MCPJSONRPC) (was, answer, now, answerNow cas.Digest) {
	if a.ParamsDigest.IsZero() || b.ParamsDigest.IsZero() {
		return a.RequestDigest, a.ResponseDigest, b.RequestDigest, b.ResponseDigest
	}
	return a.ParamsDigest, a.ResultDigest, b.ParamsDigest, b.ResultDigest
}

// impatient reports whether the asking side did not wait for its answer.
func impatient(k *tape.MCPJSONRPC) bool { return k.Error == mcpCancelled || k.Error == mcpClientEnded }

func (d *differ) mcpOpen(a, b *tape.MCPOpen) {
	sameInPlace(d, "conversation", a.Conversation, b.Conversation)
	same(d, "transport", a.Transport, b.Transport)
	d.textAt("program", "program", a.Program, b.Program)
	d.args("args", a.Args, b.Args)
	d.lists("env", a.Env, b.Env, "nothing more", d.equalMasked)
	for i := range min(len(a.Env), len(b.Env)) {
		name, _, _ := strings.Cut(a.Env[i], "=")
		d.mayHide(textFacet("variable "+name, "env", a.Env[i], b.Env[i]))
	}
	d.textAt("working directory", "cwd", a.Cwd, b.Cwd)
	d.textAt("URL", "url", a.URL, b.URL)
	switch { // which follows from how it was started
	case !d.lanes:
		same(d, "server", a.Server, b.Server)
	case !d.renamed:
		same(d, "server", tape.MCPServer(a.Server), tape.MCPServer(b.Server))
	}
	same(d, "protocol", a.Protocol, b.Protocol)
}

func (d *differ) mcpText(a, b *tape.MCPText) {
	if !d.lanes {
		same(d, "server", a.Server, b.Server)
		same(d, "conversation", a.Conversation, b.Conversation)
		sameExact(d, "arrival", a.Arrival, b.Arrival)
	}
	same(d, "from", a.From, b.From)
	d.content("text", "hash", a, a.Payload, b.Payload)
}

func (d *differ) mcpClose(a, b *tape.MCPClose) {
	if !d.lanes {
		same(d, "server", a.Server, b.Server)
		same(d, "conversation", a.Conversation, b.Conversation)
		sameExact(d, "arrival", a.Arrival, b.Arrival)
		same(d, "by", a.By, b.By)
	}
	same(d, "exit_code", numberOrUnknown(a.ExitCode), numberOrUnknown(b.ExitCode))
	same(d, "signal", a.Signal, b.Signal)
	d.text("error", a.Error, b.Error)
}

func numberOrUnknown(n *int64) verbatim {
	if n == nil {
		return "unknown"
	}
	return verbatim(show(*n))
}

// content compares what two messages of a conversation hold. of is the recorded one.
func (d *differ) content(place string, c Category, of tape.Kind, was, now *tape.Payload) {
	d.hashedAt(facet{place: place, finding: finding{category: c, was: was, now: now, message: of}}, hashOf(was), hashOf(now))
}

// cancelled reports whether the program itself ended the exchange before its answer had ended.
func cancelled(ex *tape.Exchange) bool { return ex != nil && ex.Error == tape.Cancelled }

// racy reports whether what came of two exchanges says nothing, for the program ended one of them itself: how much of its
// answer had come by then, and whether it had ended, is a matter of moments. What the program made of it shows elsewhere.
// One that the program held on to, where it had not while recording, is another matter.
func racy(a, b *tape.Exchange) bool {
	return (cancelled(a) || cancelled(b)) && a.Error != tape.HeldOn && b.Error != tape.HeldOn
}
