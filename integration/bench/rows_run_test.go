package bench

import "time"

var shellHow = "wall time of `sh -c :` plain, under `tapedeck record` and under `tapedeck replay`, alternating; medians of 15, of 3 in a short run"

var runRows = []row{
	{
		name: "run/agent-paced", unit: "x", target: atMost(1.1), timeout: 20 * time.Minute,
		what: "a whole run of an agent recorded, by the same not recorded; the model streams as real ones do",
		from: agentRun{pace: 30 * time.Millisecond, text: 1200, runs: 5},
	},
	{
		name: "run/agent-unpaced", unit: "x", timeout: 20 * time.Minute,
		what: "the same with a model that takes no time: the worst case",
		from: agentRun{text: 1200, runs: 15},
	},
	{
		name: "run/record-nothing", unit: "ms", target: atMost(20), from: whole{shellHow, shellRow(1)},
		what: "recording a program that does nothing, by which it takes longer than plain: the fixed cost",
	},
	{
		name: "run/replay-nothing", unit: "ms", target: atMost(20), from: whole{shellHow, shellRow(2)},
		what: "replaying it",
	},
	{
		name: "test/rate", unit: "/s", target: atLeast(15), from: whole{gateHow, gateRow(func(one, two float64) float64 { return 1 / one })},
		what: "recordings of a small agent that `tapedeck test` replays and compares in a second, one at a time",
	},
	{
		name: "test/two-jobs", unit: "x", target: atLeast(1.7), from: whole{gateHow, gateRow(func(one, two float64) float64 { return one / two })},
		what: "how much faster two at a time are, on two processors",
	},
}

var gateHow = "wall time of `tapedeck test DIR -j 1` and `-j 2` over 100 copies of a recording of the quickstart's agent (20 in a short run), alternating; medians of 5, of 3 in a short run"
