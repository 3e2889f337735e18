package bench

import (
	"fmt"
	"regexp"
	"time"
)

// What session logs and seals cost.
var evidenceRows = []row{
	{
		name: "session/fold", unit: "x", target: atLeast(8),
		what: "folding a session log into its snapshot: how much faster than the same fold with encoding/json into structs; beside it against maps, and in processor time alone",
		from: goBench{"./sessionlog", "^BenchmarkFold$", "3s", "3x", metric("BenchmarkFold", "times-plain", "times-maps", "times-plain-cpu", "MB/s-fold", "MB/s-plain")},
	},
	{
		name: "session/read", unit: "x",
		what: "reading a session log entry by entry: how much faster than encoding/json (processor time)",
		from: goBench{"./sessionlog", "^BenchmarkRead$", "3s", "3x", metric("BenchmarkRead", "x-json", "MB/s")},
	},
	{
		name: "session/import", unit: "MB/s", target: atLeast(100), timeout: 30 * time.Minute,
		what: "importing a transcript of 500 MB: the slowest of all kinds that are files of text",
		from: importLong(func(found [][]float64) reading {
			r := reading{value: found[0][0]}
			for _, f := range found {
				r.value = min(r.value, f[0])
				r.beside += fmt.Sprintf("%s ", figure(f[0]))
			}
			r.beside += "MB/s"
			return r
		}),
	},
	{
		name: "session/import-resident", unit: "MB", timeout: 30 * time.Minute,
		what: "most heap that such an import holds",
		from: importLong(func(found [][]float64) reading {
			r := reading{}
			for _, f := range found {
				r.value = max(r.value, f[1])
			}
			return r
		}),
	},
	{
		name: "seal/seal", unit: "x", target: atMost(1.5), timeout: 20 * time.Minute,
		what: "sealing a recording of 1,000,000 records of 600 bytes, by hashing its bytes once with BLAKE3 and SHA-256",
		from: goBench{"./seal", "^BenchmarkSeal$/^1000000x600$", "3x", "1x", metric("BenchmarkSeal/1000000x600", "ratio", "seal-s", "verify-ratio", "peak-MiB")},
	},
	{
		name: "seal/seal-small", unit: "x", timeout: 20 * time.Minute,
		what: "the same of records of 130 bytes",
		from: goBench{"./seal", "^BenchmarkSeal$/^1000000x130$", "3x", "1x", metric("BenchmarkSeal/1000000x130", "ratio", "seal-s", "verify-ratio", "peak-MiB")},
	},
	{
		name: "seal/prove", unit: "ms", target: below(50), timeout: 20 * time.Minute,
		what: "proving one record of 10,000,000 by the stored tiles: the slowest of many, each elsewhere on the tape",
		from: goBench{"./seal", "^BenchmarkProve$/^record$", "500x", "20x", metric("BenchmarkProve/record", "slowest-ms")},
	},
}

// importLong reads what the importers of transcripts say of long ones: MB/s, and MB of heap.
func importLong(read func([][]float64) reading) goTest {
	return goTest{"./sessionlog/foreign", "TestLong", regexp.MustCompile(`(\d+) MB/s, \d+ turns, heap at most (\d+) MB`), read}
}
