package bench

// What the daemon costs. integration/load measures it with thousands of sessions over sockets.
var daemonRows = []row{
	{
		name: "daemon/turns", unit: "x", target: atLeast(0.5),
		what: "turns a second that 2,000 runs have acknowledged by the store, each in its run's file, too: by the segment log alone with blocks as large",
		from: goBench{"./internal/store", "^BenchmarkAppend$/^sessions=2000$", "400000x", "4000x", metric("BenchmarkAppend/sessions=2000", "of-log-with-such-blocks", "turns/s", "turns/block", "of-log-alone")},
	},
	{
		name: "daemon/turns-files", unit: "x", target: atLeast(5),
		what: "the same by a file a run with its own fsync",
		from: goBench{"./internal/store", "^BenchmarkAppend$/^sessions=2000$", "400000x", "4000x", metric("BenchmarkAppend/sessions=2000", "x-file-a-session")},
	},
	{
		name: "daemon/turns-p99", unit: "x", target: atMost(2),
		what: "how long 99 of 100 such turns take at most, by the log alone with blocks as large",
		from: goBench{"./internal/store", "^BenchmarkAppend$/^sessions=2000$", "400000x", "4000x", metric("BenchmarkAppend/sessions=2000", "p99-of-log-with-such-blocks", "p99-µs")},
	},
	{
		name: "daemon/log", unit: "x",
		what: "records a second of the segment log with 2,000 who append: by a file a session with its own fsync; beside it by a bare loop of writes and syncs of the same blocks",
		from: goBench{"./internal/store/seglog", "^BenchmarkAppend$/^appenders=2000$", "200000x", "4000x", metric("BenchmarkAppend/appenders=2000", "x-file-a-session", "of-bare-loop", "records/s")},
	},
	{
		name: "daemon/policy", unit: "ns", target: below(1000),
		what: "one check of three wire rules, processor time; beside it the same written out by hand, the expression rule, the digests",
		from: goBench{"./policy", "^BenchmarkCheck$", "200x", "3x", metric("BenchmarkCheck", "check-ns", "hand-ns", "our-expr-ns", "with-digests-ns")},
	},
}
