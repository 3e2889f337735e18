// Package suite runs the tests that Starlark scripts hold, and reads the words in which a command line asks for a bench.
//
// A test is a function test_… of a file …_test.star, or its main where it has no such function. Each runs on a bench of its own, with
// the inputs that lie beside its file under its name; X_test.star has
//
//	X_test.llm.jsonl           answers of the model
//	X_test.process-tape.json   answers of commands
//	X_test.files/              the tree that the overlay lies over
//	X_test.mcp.tape            answers of MCP tools: a tape, or a recording of that name
//	X_test.net.tape            answers of HTTP, the same
//	X_test.FUNCTION.tape       the golden tape of one test, with X_test.FUNCTION.tape.cas/ beside it
//
// What is not there is as Options.Config has it. A test passes when it ends without an error, nothing that it asked for went
// unanswered, and its tape is its golden one where there is one. Tests run one after the other, in the order of their files' paths
// and, within a file, as they stand.
//
// Not goals: what a script is (package script), what a bench is (package testbench).
package suite
