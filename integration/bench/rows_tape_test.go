package bench

import (
	"fmt"
	"regexp"
	"time"
)

// groups are all rows, in the order in which they are measured and told.
var groups = []group{
	{title: "Tape and blobs", rows: tapeRows},
	{title: "Comparing", rows: compareRows},
	{title: "Text", rows: textRows},
	{title: "Answering", note: versusNote, rows: answerRows},
	{title: "Whole runs", rows: runRows},
	{title: "Agents", rows: agentRows()},
	{title: "Work on files", note: filePeersNote, peers: filePeerNames(), rows: fileRows},
	{title: "Terminals", rows: terminalRows},
	{title: "Sessions and seals", rows: evidenceRows},
	{title: "MCP and WebSockets", rows: talkRows},
	{title: "The testbench", rows: testbenchRows},
	{title: "The daemon", rows: daemonRows},
	{title: "How it grows", rows: scaleRows},
}

func appendBench(sub string) goBench {
	return goBench{"./tape", "^BenchmarkAppend$", "20x", "2x", metric("BenchmarkAppend/"+sub, "x-raw", "ns/record", "MB/s")}
}

func nilBench(unit string) goBench {
	return goBench{"./tape", "^BenchmarkNilRecorder$", "1s", "1x", metric("BenchmarkNilRecorder", unit)}
}

var tapeRows = []row{
	{
		name: "tape/append-run", unit: "x", target: atMost(2.5), from: appendBench("big"),
		what: "appending 1,000,000 records of an agent's run to a file, by writing the same finished lines with the same system calls (processor time)",
	},
	{
		name: "tape/append-small", unit: "x", target: atMost(2.5), from: appendBench("small"),
		what: "the same of small records: clocks and files",
	},
	{
		name: "tape/resident", unit: "MiB", target: below(64), timeout: 30 * time.Minute,
		what: "most memory that a process holds which writes, and one which reads, 10,000,000 records",
		from: goTest{"./tape", "TestManyRecordsAreWrittenAndReadInLittleMemory", regexp.MustCompile(`held (\d+) MiB`), func(found [][]float64) reading {
			most := 0.0
			for _, f := range found {
				most = max(most, f[0])
			}
			return reading{value: most}
		}},
	},
	{
		name: "tape/load", unit: "x", target: atLeast(8),
		what: "loading typed, validated records from memory: how much faster than encoding/json into the same structs, which validates nothing (processor time)",
		from: goBench{"./tape", "^BenchmarkLoad$", "2s", "2x", metric("BenchmarkLoad", "x-json", "MB/s")},
	},
	{
		name: "tape/nil-time", unit: "ns", target: below(2), from: nilBench("ns/hook"),
		what: "a hook with a nil recorder: payload, record and the question whether it records",
	},
	{
		name: "tape/nil-allocations", unit: "allocations", target: atMost(0), from: nilBench("allocs/op"),
		what: "what 1,000 such hooks allocate",
	},
	{
		name: "cas/ingest", unit: "x", target: atLeast(0.9),
		what: "pace of putting new blobs of 4 KiB into memory, by that of BLAKE3 and one copy into fresh memory, without which nothing is kept (processor time); of-raw is by BLAKE3 alone",
		from: goBench{"./cas", "^BenchmarkMemoryPut$", "2s", "2x", metric("BenchmarkMemoryPut", "of-copy", "of-raw", "ns/blob")},
	},
	{
		name: "files/snapshot-again", unit: "x", target: atMost(0.25), timeout: 20 * time.Minute,
		what: "second snapshot of an unchanged tree of 20,000 files, by the first",
		from: goBench{"./axis/files", "^BenchmarkSnap$", "3x", "1x", ratio("BenchmarkSnap/unchanged", "BenchmarkSnap/first")},
	},
	{
		name: "deck/pack", unit: "x", timeout: 20 * time.Minute,
		what: "packing a recording of 32 MB in 1,000 blobs, by compressing the same bytes with zstd in memory",
		from: goBench{"./deck", "^Benchmark(Pack|Zstd)$", "5x", "1x", ratio("BenchmarkPack", "BenchmarkZstd")},
	},
}

func compareBench(mode string) goBench {
	return goBench{"./fidelity", "^BenchmarkTapes$/^(same|different)$/^(semantic|lanes)$", "1x", "1x",
		metric("BenchmarkTapes/"+mode, "x_load", "compare_s", "load_s")}
}

var compareRows = []row{
	{
		name: "compare/same", unit: "x", target: atMost(1), timeout: 20 * time.Minute, from: compareBench("same/semantic"),
		what: "comparing two equal tapes of 1,000,000 records in order, by loading both one after the other",
	},
	{
		name: "compare/different", unit: "x", target: atMost(1), timeout: 20 * time.Minute, from: compareBench("different/semantic"),
		what: "the same of tapes with 1,000 other records and 100 inserted ones",
	},
	{
		name: "compare/lanes-same", unit: "x", target: atMost(1), timeout: 20 * time.Minute, from: compareBench("same/lanes"),
		what: "comparing equal tapes lane by lane, which holds the records, by loading and holding both",
	},
	{
		name: "compare/lanes-different", unit: "x", target: atMost(1), timeout: 20 * time.Minute, from: compareBench("different/lanes"),
		what: "the same of different tapes",
	},
	{
		name: "compare/resident", unit: "MiB", target: atMost(4), timeout: 20 * time.Minute,
		what: "how much more memory comparing two equal tapes of 1,000,000 records in order holds than tapes of 100,000",
		from: goTest{"./fidelity", "TestMemoryOfPositionalComparisonIsBounded",
			regexp.MustCompile(`different false: (\d+) kB held for \d+ records, (\d+) kB for \d+`), func(found [][]float64) reading {
				few, many := found[0][0]/1024, found[0][1]/1024
				return reading{value: max(0, many-few), beside: fmt.Sprintf("%s MiB against %s MiB", figure(many), figure(few))}
			}},
	},
}
