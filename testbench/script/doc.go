// Package script runs Starlark programs on a testbench: https://github.com/bazelbuild/starlark, with while loops, recursion and
// sets, and with the names of docs/reference/script.md in place of the world.
//
// A script defines main(args). Whatever it asks of the world goes through its bench, so that two runs with the same fixtures give
// the same tape, byte for byte. It sees no clock, file, command or host but those.
//
// # Limits
//
// Steps, memory, time and the depth of calls are bounded, and end a script between two of its steps. A step that goes on, or takes
// four times the memory, is left behind: Run returns, its goroutine does not.
//
// # Order
//
// The branches of parallel run one at a time, as the bench's clock has it. They may share values.
//
// # Modules
//
// load() takes files below the script's directory and nothing else. A module runs once in a run.
package script
