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
}
