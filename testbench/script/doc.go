// Package script runs Starlark programs on a testbench: https://github.com/bazelbuild/starlark, with while loops, recursion and
// sets, and with the names of docs/reference/script.md in place of the world.
//
// A script defines main(args). Whatever it asks of the world goes through its bench, so that two runs with the same fixtures give
// the same tape, byte for byte. It sees no clock, file, command or host but those.
//
// # Limits
//
// Steps, memory, time and the depth of calls and values are bounded. Time and steps end a script between two of its steps. What a
// single step may allocate is known before it runs: operators and methods that can make large values are compiled to checked ones
// (see rewrite.go and charge.go), so that a string of 10 GB is an error and no allocation. A step that neither ends nor allocates is left behind
// when the time is over: Run returns, its goroutine does not.
//
// # Order
//
// The branches of parallel run one at a time, as the bench's clock has it. They may share values.
//
// # Modules
//
// load() takes files below the script's directory and nothing else. A module runs once in a run.
package script
