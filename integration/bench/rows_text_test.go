package bench

// scrubBench runs all benchmarks that a row of scrub reads, so that they are of one run.
func scrubBench(name string) goBench {
	return goBench{"./scrub", "^Benchmark(Bytes|Writer|Mask|Copy)$", "1s", "10x", ratio("Benchmark"+name, "BenchmarkCopy")}
}

func freshBench(text string) goBench {
	return goBench{"./scrub", "^BenchmarkFresh$/^(JSON|code)(_copied)?$", "1s", "10x",
		ratio("BenchmarkFresh/"+text, "BenchmarkFresh/"+text+"_copied")}
}

func classifyBench(sub string) goBench {
	return goBench{"./axis/llm", "^BenchmarkClassify$", "1s", "5x", metric("BenchmarkClassify/"+sub, "x-json", "MB/s")}
}

var textRows = []row{
	{
		name: "scrub/fresh", unit: "x", from: freshBench("JSON"),
		what: "searching 70 KB of a model's JSON without secrets, not seen before, for 20 known ones and all rules, by copying it",
	},
	{
		name: "scrub/fresh-code", unit: "x", from: freshBench("code"),
		what: "the same of Go source",
	},
	{
		name: "scrub/again", unit: "x", from: scrubBench("Bytes"),
		what: "searching the same text again, as every request of a conversation brings it, by allocating and copying it",
	},
	{
		name: "scrub/stream", unit: "x", from: scrubBench("Writer"),
		what: "the same in pieces of 1,400 bytes, as a stream",
	},
	{
		name: "scrub/mask", unit: "x", from: scrubBench("Mask"),
		what: "masking volatile facts in the same text",
	},
	{
		name: "llm/classify-2KB", unit: "x", from: classifyBench("2KB/plain"),
		what: "the identity of a model call of 2 KB (parse, sort, hash), by encoding/json reading and writing the body",
	},
	{
		name: "llm/classify-100KB", unit: "x", from: classifyBench("100KB/plain"),
		what: "the same of 100 KB",
	},
	{
		name: "llm/classify-masked", unit: "x", from: classifyBench("100KB/masked"),
		what: "the same of 100 KB, masked too",
	},
}
