package fidelity

import (
	"cmp"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What Error of an mcp_json_rpc says of a request that got no answer; anything else is why the recorder refused it. Where the
// asking side did not wait for the answer, whether it had come by then is a matter of moments.
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
	d.extra(a.Extra, b.Extra)
}

func (d *differ) mcpInPlace(a, b *tape.MCPJSONRPC) {
	same(d, MCPServer, a.Server, b.Server)
	same(d, MCPMethod, a.Method, b.Method)
	same(d, MCPRequestDigest, a.RequestDigest, b.RequestDigest)
	same(d, MCPResponseDigest, a.ResponseDigest, b.ResponseDigest)
	d.message(MCPRequestHash, a, b, hashOf(a.Request), hashOf(b.Request))
	d.message(MCPResponseHash, a, b, hashOf(a.Response), hashOf(b.Response))
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
	was, now := requestOf(a, b)
	d.message(MCPRequestDigest, a, b, was, now)
	if refusedCall(b) && !refusedCall(a) {
		if was == now { // as it was recorded, and yet not answered
			d.text(MCPError, a.Error, b.Error)
		}
		return
	}
	if !d.exact && hasty(a, b) {
		return
	}
	was, now = answerOf(a, b)
	d.message(MCPResponseDigest, a, b, was, now)
	d.text(MCPError, a.Error, b.Error)
	sameExact(d, MCPLatency, a.LatencyMS, b.LatencyMS)
}

// message adds a finding about one half of two messages whose digests or hashes differ.
func (d *differ) message(c Category, a, b *tape.MCPJSONRPC, was, now cas.Digest) {
	if was == now {
		return
	}
	f := finding{category: c, talk: a, was: a.Request, now: b.Request}
	if c == MCPResponseHash || c == MCPResponseDigest {
		f.part, f.was, f.now = answer, a.Response, b.Response
	}
	d.hashed(f, was, now)
}

// requestOf is what two requests compare by: the digests of their parameters where both have them, else those of their bytes.
func requestOf(a, b *tape.MCPJSONRPC) (was, now cas.Digest) {
	if bothMasked(a, b) {
		return a.ParamsDigest, b.ParamsDigest
	}
	return a.RequestDigest, b.RequestDigest
}

// answerOf is requestOf for answers. One that never came has no digest of a result.
func answerOf(a, b *tape.MCPJSONRPC) (was, now cas.Digest) {
	if bothMasked(a, b) {
		return a.ResultDigest, b.ResultDigest
	}
	return a.ResponseDigest, b.ResponseDigest
}

func bothMasked(a, b *tape.MCPJSONRPC) bool {
	return !a.ParamsDigest.IsZero() && !b.ParamsDigest.IsZero()
}

// hasty reports whether what came of two calls says nothing, for the asking side of one did not wait for it.
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
	if !d.lanes {
		same(d, MCPOpenConversation, a.Conversation, b.Conversation)
	}
	same(d, MCPOpenTransport, a.Transport, b.Transport)
	d.text(MCPOpenProgram, a.Program, b.Program)
	if !slices.EqualFunc(a.Args, b.Args, func(x, y string) bool { return x == y || d.masked(x) == d.masked(y) }) {
		d.argList(MCPOpenArgs, a.Args, b.Args)
	}
	if !slices.EqualFunc(a.Env, b.Env, func(x, y string) bool { return x == y || d.masked(x) == d.masked(y) }) {
		d.argList(MCPOpenEnv, a.Env, b.Env)
	}
	d.text(MCPOpenCwd, a.Cwd, b.Cwd)
	d.text(MCPOpenURL, a.URL, b.URL)
	same(d, MCPOpenProtocol, a.Protocol, b.Protocol)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) mcpText(a, b *tape.MCPText) {
	if !d.lanes {
		same(d, MCPTextServer, a.Server, b.Server)
		same(d, MCPTextConversation, a.Conversation, b.Conversation)
		sameExact(d, MCPTextArrival, a.Arrival, b.Arrival)
	}
	same(d, MCPTextFrom, a.From, b.From)
	d.content(MCPTextHash, a, a.Payload, b.Payload)
	d.extra(a.Extra, b.Extra)
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
	d.extra(a.Extra, b.Extra)
}

func numberOrUnknown(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return show(*n)
}

// content compares what two messages of a conversation hold. of is the recorded one.
func (d *differ) content(c Category, of tape.Kind, was, now *tape.Payload) {
	if w, n := hashOf(was), hashOf(now); w != n {
		d.hashed(finding{category: c, was: was, now: now, talk: of}, w, n)
	}
}
