package bench

import "time"

// How the costs grow. The figure of such a row is how much dearer one more is at the end of its curve than where it begins.
var scaleRows = []row{
	{
		name: "scale/agents", unit: "x", timeout: 20 * time.Minute, needs: []need{needJail},
		what: "what a recorded run of an agent takes of the machine with 100 at once, by the same with 2",
		from: agentScale{at: []int{1, 2, 5, 10, 20, 50, 100}, few: []int{1, 2, 4}},
	},
	{
		name: "scale/records", unit: "x", timeout: 30 * time.Minute, needs: []need{needProc},
		what: "what comparing a record takes with `tapedeck diff` at 10,000,000 on a tape, by the same at 100,000",
		from: recordScale{at: []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000}, few: []int{1_000, 100_000}, from: 100_000, memory: false},
	},
	{
		name: "scale/records-memory", unit: "x", timeout: 30 * time.Minute, needs: []need{needProc},
		what: "most memory that `tapedeck diff` holds at 10,000,000 records on a tape, by the same at 100,000",
		from: recordScale{at: []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000}, few: []int{1_000, 100_000}, from: 100_000, memory: true},
	},
	{
		name: "scale/library", unit: "x", timeout: 30 * time.Minute, needs: []need{needJail},
		what: "recording a program that does nothing in a library of 10,000 recordings, by the same in an empty one",
		from: libraryScale{at: []int{1, 10, 100, 1_000, 10_000}, few: []int{1, 100}, runs: 5},
	},
}
