package bench

import (
	"net/http"
	"time"
)

// Sizes of request bodies, in bytes, and how many requests of each a round has.
const (
	small, manySmall, fewSmall = 2 << 10, 10_000, 100
	large, manyLarge, fewLarge = 100 << 10, 2_000, 50
)

func versusJSON(bytes, long, short int) versus {
	return versus{
		bytes: bytes, long: long, short: short, peer: startJSON, answer: "again", gives: http.HandlerFunc(encodeAgain),
		called: "a net/http server that decodes the request's JSON and encodes it as its answer", same: "the same answers",
	}
}

func versusPeer(p peer, called, same string, bytes, long, short int) versus {
	return versus{
		bytes: bytes, long: long, short: short, peer: p, answer: "once", gives: http.HandlerFunc(answerOnce), called: called, same: same,
	}
}

const (
	calledMitmproxy = "mitmdump in reverse mode (`--server-replay --server-replay-nopop`, quiet) that recorded the same"
	calledAimock    = "aimock (its `llmock` command, silent) with a fixture of the same text"
	sameBytes       = "the same answer of 1.2 KB"
	sameText        = "an answer of the same 1,000 bytes of text, in the provider's form"
)

var answerRows = []row{
	{
		name: "replay/json-2KB", unit: "x", target: atLeast(0.8), from: versusJSON(small, manySmall, fewSmall),
		what: "rate of model calls of 2 KB answered from a tape (parsed, matched, scrubbed, recorded anew), by that of a net/http server that decodes and encodes the JSON",
	},
	{
		name: "replay/json-100KB", unit: "x", target: atLeast(0.7), from: versusJSON(large, manyLarge, fewLarge),
		what: "the same of 100 KB",
	},
	{
		name: "replay/mitmproxy-2KB", unit: "x", target: atLeast(2), needs: []need{needMitmproxy},
		from: versusPeer(startMitmproxy(small), calledMitmproxy, sameBytes, small, manySmall/5, fewSmall),
		what: "rate of model calls of 2 KB answered from a tape, by that of mitmproxy's server replay",
	},
	{
		name: "replay/mitmproxy-100KB", unit: "x", target: atLeast(2), needs: []need{needMitmproxy},
		from: versusPeer(startMitmproxy(large), calledMitmproxy, sameBytes, large, manyLarge/2, fewLarge),
		what: "the same of 100 KB",
	},
	{
		name: "replay/aimock-2KB", unit: "x", target: atLeast(2.5), needs: []need{needNode, needAimock},
		from: versusPeer(startAimock, calledAimock, sameText, small, manySmall, fewSmall),
		what: "rate of model calls of 2 KB answered from a tape, by that of aimock",
	},
	{
		name: "replay/aimock-100KB", unit: "x", target: atLeast(2), needs: []need{needNode, needAimock},
		from: versusPeer(startAimock, calledAimock, sameText, large, manyLarge, fewLarge),
		what: "the same of 100 KB",
	},
	{
		name: "replay/realtime", unit: "ms", target: atMost(5), timeout: 5 * time.Minute,
		what: "how far from its recorded time a chunk of a streamed answer comes with --speed realtime",
		from: whole{"`tapedeck replay --proxy --speed realtime` of a program that notes when each chunk comes, held against `t_ms` on the tape; " +
			"recorded from a server that streams an event every 20 ms", realtime},
	},
	{
		name: "httptape/replay", unit: "x",
		what: "a model call in a Go test answered by httptape, by net/http to a server of the same process",
		from: goBench{"./httptape", "^Benchmark(Replay|Server)$", "1s", "20x", ratio("BenchmarkReplay", "BenchmarkServer")},
	},
}
