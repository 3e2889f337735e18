package bench

// What MCP servers and WebSockets cost when they are recorded, and how fast a tape answers for them.
var talkRows = []row{
	{
		name: "mcp/relayed", unit: "ms", target: atMost(0.3),
		what: "a call of a tool over pipes, recorded onto a tape on disk: the median, less that of the bare pipes",
		from: goBench{"./axis/mcp", "^BenchmarkRelayedCall$/^result=100$", "3000x", "50x", metric("BenchmarkRelayedCall/result=100", "added-ms", "relay-us", "bare-us")},
	},
	{
		name: "mcp/relayed-100k", unit: "ms",
		what: "the same with an answer of 100 KiB",
		from: goBench{"./axis/mcp", "^BenchmarkRelayedCall$/^result=102400$", "500x", "20x", metric("BenchmarkRelayedCall/result=102400", "added-ms", "relay-us", "bare-us")},
	},
	{
		name: "mcp/replayed", unit: "x", target: atLeast(0.7),
		what: "calls a second that a tape answers, by a bare go-sdk server that returns constants; the same client, in memory",
		from: goBench{"./axis/mcp/mcpsdk", "^Benchmark(BareServer|Replayed)$", "5000x", "50x", ratio("BenchmarkBareServer", "BenchmarkReplayed")},
	},
	{
		name: "mcp/replayed-on-tape", unit: "x",
		what: "the same where the replay writes a tape of its own and puts the program's secrets in, as `tapedeck replay` does",
		from: goBench{"./axis/mcp/mcpsdk", "^Benchmark(BareServer|ReplayedOnTape)$", "5000x", "50x", ratio("BenchmarkBareServer", "BenchmarkReplayedOnTape")},
	},
	{
		name: "ws/echo", unit: "x", target: atLeast(0.7),
		what: "messages of 1 KiB a second that a WebSocket echoes through the recorder, TLS on both sides, by the direct rate; 64 in flight",
		from: goBench{"./axis/network", "^BenchmarkSocketEcho$/^64-in-flight$", "20000x", "500x", metric("BenchmarkSocketEcho/64-in-flight", "ratio", "recorded-µs/op", "direct-µs/op")},
	},
	{
		name: "ws/echo-jail", unit: "x", target: atLeast(0.75), needs: []need{needJail},
		what: "the same of a whole program in the jail, over ws://: program, recorder and server are processes of their own; the program draws the mask of each message with getrandom, which the recorder answers: that call is most of the difference",
		from: talkRun{flight: 64, messages: 2000, few: 100, turns: 25},
	},
	{
		name: "ws/echo-alone", unit: "x",
		what: "the same, one after another: each message passes two more sockets",
		from: goBench{"./axis/network", "^BenchmarkSocketEcho$/^1-in-flight$", "5000x", "500x", metric("BenchmarkSocketEcho/1-in-flight", "ratio", "recorded-µs/op", "direct-µs/op")},
	},
}
