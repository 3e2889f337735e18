package bench

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// What the daemon costs.
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
		name: "daemon/sockets", unit: "x", target: atLeast(0.5),
		what: "turns a second over sockets of 2,000 sessions, 64 a call, acknowledged: by a bare server that reads no JSON and makes the same system calls (a frame off the socket, into the log, into the session's file, an answer); beside it by the log alone, which no server reaches by half while those who send share its machine",
		from: underLoad("turns", ` 64 turns a call: (.*?([\d.]+)x of a bare server.*)`),
	},
	{
		name: "daemon/sockets-p99", unit: "x", target: atMost(2),
		what: "how long 99 of 100 turns take at most that arrive at random, 2,000 a second, on 2,000 sessions: by that server, by turns",
		from: underLoad("arrivals", ` 2000 turns a second: (p99 ([\d.]+)x of a bare server.*)`),
	},
	{
		name: "daemon/sockets-p99-5000", unit: "x", target: atMost(2),
		what: "the same of 5,000 a second",
		from: underLoad("arrivals", ` 5000 turns a second: (p99 ([\d.]+)x of a bare server.*)`),
	},
	{
		name: "daemon/crowd", unit: "x", target: atMost(2),
		what: "how long 99 of 100 turns of 2,000 sessions take at most while 10 clients flood the daemon and 10 never read: by the same without those, by turns",
		from: underLoad("crowd", `: (p99 ([\d.]+)x beside .*)`),
	},
	{
		name: "daemon/policy", unit: "ns", target: below(1000),
		what: "one check of three wire rules, processor time; beside it the same written out by hand, the expression rule, the digests",
		from: goBench{"./policy", "^BenchmarkCheck$", "200x", "3x", metric("BenchmarkCheck", "check-ns", "hand-ns", "our-expr-ns", "with-digests-ns")},
	},
}

// underLoad is a source that runs a scenario of integration/load and reads a line that it logs: the figure, and all of it beside.
func underLoad(scenario, line string) source {
	args := []string{"test", "-tags", "load", "./integration/load", "-run", "^TestLoad$/^" + scenario + "$", "-v", "-count", "1", "-timeout", "30m"}
	return whole{"scenario " + scenario + " of integration/load", func(ctx context.Context, e *env) (reading, error) {
		text, err := e.goTest(ctx, args, longVar(e.short))
		if err != nil {
			return reading{}, err
		}
		m := regexp.MustCompile(line).FindStringSubmatch(text)
		if m == nil {
			return reading{}, fmt.Errorf("scenario %s does not say %s", scenario, line)
		}
		value, err := strconv.ParseFloat(m[2], 64)
		return reading{value: value, beside: m[1]}, err
	}}
}
