// Package testbench runs agent logic with every input virtual: a paused clock, a model that answers from rules, files in memory,
// commands from a tape. What was asked and what came stands on an event tape, and from that tape the same logic runs again.
//
//	b := testbench.New(t, &testbench.Config{LLM: testbench.LLM{Fixture: "testdata/agent.llm.jsonl"}})
//	err := agent(t.Context(), b)
//	testbench.Golden(t, b, "testdata/agent.tape")
//
// A Bench holds one piece for each axis, of the package of that axis: clock, fixture, overlay, process, roundtrip. Each piece is
// useful alone; a bench wires them to one Config, one clock and one tape. docs/testbench.md is the guide. Packages script and wasi run
// programs of other languages on a bench.
//
// # Hermetic
//
// Nothing of the host is read, written, started or asked unless the Config names it. A call that nothing answers fails with what was
// asked and how to give it, and so does the test (New), whatever the caller does with the error.
//
// # Order, time, bytes
//
// On a clock that stands still equal inputs give equal bytes: one branch of Parallel runs at a time, time moves only when all of
// them wait, latencies pass on that clock before the record is written, and no record holds a time of the machine. What plain
// goroutines do side by side stands in the order in which they did it.
//
// # Replay
//
// Replay answers every axis from a tape. Of ours, by what is asked, equal requests in recorded order; of another producer's, each kind
// in recorded order. What was an input is given again, so a replay differs in what the run itself says: Verdict compares. The first
// call without an answer ends the comparison, and every call after it fails with the same error.
//
// # Durability
//
// Records are handed to the kernel 64 KiB at a time and at Close, behind the run, each payload before the record that names it; nothing
// is synced. A run that is killed leaves a tape that loads up to a whole record.
//
// # Secrets
//
// Everything goes through tape.RecorderOptions.Clean; placeholders are numbered by first appearance.
//
// Concurrency: a Bench and its pieces may be used by any number of goroutines.
//
// Not goals: programs that read time, files or the network by themselves (package deck records those), comparing (package fidelity).
package testbench
