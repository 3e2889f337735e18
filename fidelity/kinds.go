package fidelity

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// record compares two records and returns what differs. A kind that differs ends the comparison.
func (d *differ) record(a, b *tape.Record) []finding {
	d.found, d.facets = d.found[:0], nil
	if a.Kind.Name() != b.Kind.Name() && !bothUnknown(a.Kind, b.Kind) {
		d.add(KindMismatch, verbatim(describe(a.Kind)), verbatim(describe(b.Kind)))
		return d.found
	}
	if d.exact {
		same(d, PhaseMismatch, a.Phase.String(), b.Phase.String())
		same(d, VirtualTimeDrift, a.VirtualTimeMS, b.VirtualTimeMS)
		same(d, MonotonicDrift, a.MonotonicMS, b.MonotonicMS)
		if !d.lanes { // lanes run side by side: their common order is nobody's doing
			same(d, GlobalOrdinalDrift, a.G, b.G)
		}
	}
	d.kind(a.Kind, b.Kind)
	if x, y := tape.ExchangeOf(a.Kind), tape.ExchangeOf(b.Kind); x != nil && y != nil && (d.exact || !d.lanes) {
		d.chunkFields(x.StreamExtra, y.StreamExtra)
	}
	d.extra(extraOf(a.Kind), extraOf(b.Kind))
	d.raw(a.Raw, b.Raw)
	d.extra(a.Extra, b.Extra)
	return d.found
}

// bothUnknown reports whether neither kind is known here, whatever they are called.
func bothUnknown(a, b tape.Kind) bool {
	_, one := a.(*tape.Unknown)
	_, other := b.(*tape.Unknown)
	return one && other
}

// kind compares two kinds of one name. Kinds of one name and two types cannot come from a tape; they differ.
func (d *differ) kind(a, b tape.Kind) {
	compare := rules[a.Name()]
	d.prefix = prefixOf(a)
	if _, unknown := a.(*tape.Unknown); unknown {
		compare, d.prefix = compareUnknown, ""
	}
	alike := compare != nil && compare(d, a, b)
	if d.prefix = ""; !alike {
		d.add(UnknownKind, verbatim(describe(a)), verbatim(describe(b)))
	}
}

// prefixOf is what the categories of a kind's fields begin with.
func prefixOf(k tape.Kind) Category { return cmp.Or(shortNames[k.Name()], Category(k.Name())) }

const ofModels Category = "llm"

// shortNames are what the categories of a kind begin with, where that is not its name.
var shortNames = map[string]Category{
	"llm_call": ofModels, "http_exchange": "http", "process_spawn": "process", "mcp_json_rpc": "mcp", "policy_verdict": "policy",
}

// A rule compares two records of a kind. It reports false where one is of another type.
type rule func(d *differ, a, b tape.Kind) bool

// of makes a rule of what compares the fields.
func of[K tape.Kind](compare func(d *differ, a, b K)) rule {
	return func(d *differ, a, b tape.Kind) bool {
		x, okX := a.(K)
		y, okY := b.(K)
		if okX && okY {
			compare(d, x, y)
		}
		return okX && okY
	}
}

// rules are the kinds, by name. Their categories are those of fields: see differ.prefix. The keys that no version of the format names
// compare besides.
var rules = map[string]rule{
	"clock_read": of(func(d *differ, a, b *tape.ClockRead) {
		same(d, "source", a.Source, b.Source)
		same(d, "value", a.ValueMS, b.ValueMS)
	}),
	"clock_sleep": of(func(d *differ, a, b *tape.ClockSleep) {
		same(d, "duration", a.DurationMS, b.DurationMS)
	}),
	"llm_call":      of((*differ).llmCall),
	"http_exchange": of((*differ).httpExchange),
	"file_read":     of(func(d *differ, a, b *tape.FileRead) { d.file(&a.File, &b.File) }),
	"file_write":    of(func(d *differ, a, b *tape.FileWrite) { d.file(&a.File, &b.File) }),
	"file_delete":   of(func(d *differ, a, b *tape.FileDelete) { d.file(&a.File, &b.File) }),
	"process_spawn": of((*differ).process),
	"mcp_json_rpc":  of((*differ).mcp),
	"mcp_open":      of((*differ).mcpOpen),
	"mcp_text":      of((*differ).mcpText),
	"mcp_close":     of((*differ).mcpClose),
	"ws_open":       of((*differ).wsOpen),
	"ws_message":    of((*differ).wsMessage),
	"ws_close": of(func(d *differ, a, b *tape.WSClose) {
		sameInPlace(d, "connection", a.Connection, b.Connection)
		same(d, "code", a.Code, b.Code)
		same(d, "reason", a.Reason, b.Reason)
	}),
	"tls_refused": of(func(d *differ, a, b *tape.TLSRefused) {
		same(d, "host", a.Host, b.Host)
		same(d, "port", a.Port, b.Port)
		same(d, "reason", a.Reason, b.Reason)
	}),
	"net_refused": of(func(d *differ, a, b *tape.NetRefused) {
		same(d, "addr", a.Addr, b.Addr)
		same(d, "port", a.Port, b.Port)
		same(d, "reason", a.Reason, b.Reason)
	}),
	"name_lookup": of(func(d *differ, a, b *tape.NameLookup) {
		d.text("host", a.Host, b.Host)
		same(d, "type", a.Type, b.Type)
		same(d, "result", a.Result, b.Result)
	}),
	"dir_list": of((*differ).dirList),
	"env_read": of(func(d *differ, a, b *tape.EnvRead) {
		same(d, "name", a.VarName, b.VarName)
		d.payload("value", a.Value, b.Value)
	}),
	"file_stat": of(func(d *differ, a, b *tape.FileStat) {
		d.text("path", a.Path, b.Path)
		same(d, "type", a.Type, b.Type)
		sameExact(d, "len", a.LenBytes, b.LenBytes)
		same(d, "mode", a.Mode, b.Mode)
	}),
	"random_read": of(func(d *differ, a, b *tape.RandomRead) {
		same(d, "length", a.Length, b.Length)
		d.payload("hash", a.Payload, b.Payload)
	}),
	"policy_verdict": of((*differ).policyVerdict),
}

var compareUnknown = of(func(d *differ, a, b *tape.Unknown) {
	same(d, UnknownKind, string(a.JSON), string(b.JSON))
})

func (d *differ) process(a, b *tape.ProcessSpawn) {
	if !d.replaced {
		d.textAt("program", "program", a.Program, b.Program)
		args := b.Args
		if d.lanes && !d.exact {
			args = d.pids.asRecorded(a.Args, args)
		}
		d.args("args", a.Args, args, a.ParentSpawnID == 0)
	}
	d.textAt("working directory", "cwd", orNull(a.Cwd), orNull(b.Cwd))
	if !d.lanes || endedItself(a) && endedItself(b) {
		same(d, "exit_code", a.ExitCode, b.ExitCode)
		same(d, "signal", a.Signal, b.Signal)
	}
	sameExact(d, "duration", a.DurationMS, b.DurationMS)
	if d.onScreen != 1 && !d.child {
		d.digested("stdout", "stdout_hash", a.StdoutDigest, b.StdoutDigest, a.Stdout, b.Stdout)
	}
	if d.onScreen != 2 && !d.child {
		d.digested("stderr", "stderr_hash", a.StderrDigest, b.StderrDigest, a.Stderr, b.Stderr)
	}
	if !d.lanes || d.exact && !d.child { // an input, which replay gives itself
		d.payload("stdin_hash", a.Stdin, b.Stdin)
	}
	if !d.lanes {
		same(d, "spawn_id", a.SpawnID, b.SpawnID)
		same(d, "parent", a.ParentSpawnID, b.ParentSpawnID)
		same(d, "pid", a.PID, b.PID)
		d.payload("times", a.Times, b.Times)
		d.payload("ticks", a.Ticks, b.Ticks)
		d.payload("answers", a.Answers, b.Answers)
		if hashOf(a.Stdout) == hashOf(b.Stdout) { // else it is said
			same(d, "stdout_digest", a.StdoutDigest, b.StdoutDigest)
		}
		if hashOf(a.Stderr) == hashOf(b.Stderr) {
			same(d, "stderr_digest", a.StderrDigest, b.StderrDigest)
		}
	}
}

// endedItself reports whether how a process ended is its own doing. Whether one has written all before the other end of its pipe is
// closed is a matter of moments.
func endedItself(p *tape.ProcessSpawn) bool {
	return !tape.HasFlag(p, tape.LeftKey) && !tape.HasFlag(p, tape.AgainKey) && (p.Signal != "SIGPIPE" || p.ParentSpawnID == 0)
}

// args compares two lists of arguments as one field, those of the program itself or not; the message shows the first one that differs.
func (d *differ) args(c Category, a, b []string, own bool) {
	if slices.Equal(a, b) {
		return
	}
	d.lists(c, a, b, "nothing more", d.equalMasked)
	for i := range min(len(a), len(b)) {
		f := textFacet(fmt.Sprintf("argument %d", i+1), c, a[i], b[i])
		f.argument = own
		d.mayHide(f)
	}
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

const (
	attrsKey = "xattrs" // of the extended attributes of a file
	wholeKey = "whole"  // of a state that a call ended, or of the one behind it
)

// file compares two files. In lane mode the digest after masking stands for the bytes where both records have one, and
// what the file held before, which follows from the rest, does not count.
func (d *differ) file(a, b *tape.File) {
	d.text("path", a.Path, b.Path)
	same(d, "mode", a.Mode, b.Mode)
	sameExact(d, "len", a.LenBytes, b.LenBytes)
	if !d.lanes {
		if same(d, "hash", a.ContentHash, b.ContentHash); a.ContentHash == b.ContentHash { // else the others say it again
			d.payload("content", a.Content, b.Content)
			same(d, "digest", a.ContentDigest, b.ContentDigest)
		}
		d.payload("before", a.Before, b.Before)
		same(d, "spawn", a.SpawnID, b.SpawnID)
		return
	}
	same(d, attrsKey, string(tape.FieldValue(a.Extra, attrsKey)), string(tape.FieldValue(b.Extra, attrsKey)))
	was, now := a.ContentHash, b.ContentHash
	if !a.ContentDigest.IsZero() && !b.ContentDigest.IsZero() {
		was, now = a.ContentDigest, b.ContentDigest
	}
	d.hashedAt(facet{place: a.Path, finding: finding{category: "hash", was: a.Content, now: b.Content}, isBytes: true}, was, now)
}

// dirList compares what stood in a directory as one field: the digest, and by position the names themselves, whose digest it is.
func (d *differ) dirList(a, b *tape.DirList) {
	d.text("path", a.Path, b.Path)
	f := finding{category: "names", was: a.Names, now: b.Names}
	if a.NamesDigest != b.NamesDigest {
		d.hashed(f, a.NamesDigest, b.NamesDigest)
	} else if !d.lanes && !a.Names.Same(b.Names) {
		d.hashed(f, hashOf(a.Names), hashOf(b.Names))
	}
}

func (d *differ) policyVerdict(a, b *tape.PolicyVerdict) {
	same(d, "set", a.PolicySet, b.PolicySet)
	if !d.lanes || d.exact { // between lanes it is what a provider made up for the call
		same(d, "action_id", a.ActionID, b.ActionID)
	}
	same(d, "tool", a.Tool, b.Tool)
	same(d, "params_digest", a.ParamsDigest, b.ParamsDigest)
	if !d.lanes {
		d.payload("params_hash", a.ParamsPayload, b.ParamsPayload)
	}
	same(d, "state", string(a.State), string(b.State))
	same(d, "verdict", string(d.said(a)), string(d.said(b)))
}

// said is what a policy decided, between lanes without the id of the action, which each violation repeats.
func (d *differ) said(k *tape.PolicyVerdict) []byte {
	if !d.lanes || d.exact || k.ActionID == "" {
		return k.Verdict
	}
	return bytes.ReplaceAll(k.Verdict, []byte(strconv.Quote(k.ActionID)), []byte(`""`))
}

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
	d.args("args", a.Args, b.Args, false)
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
