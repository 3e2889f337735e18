// Package truth measures whether the verdict of a replay can be believed, and writes it down:
//
//	go test -v -timeout 5h ./integration/truth -run Verdicts -programs 200 -page docs/reference/truth.md    400 programs, recorded, replayed as they are and with changes
//	go test -v ./integration/truth -run Verdicts -programs 12                the short form, of .ci/run
//	go test -v ./integration/truth -run Verdicts -modes jail -only 1/7       one program, with all of its changes and what was said of each
//
// A generator makes programs in Python and Node from a seed and an index: calls of models over every provider's wire, plain HTTP,
// MCP, files, children, threads, and in every third program something that differs in every run (a time, a random number, a PID).
// Each is recorded, replayed twice unchanged, and once with each of some changes: one constant, one file, one child, one call is
// another. The label of a change (caught, harmless, cannot be seen) and the words that name it are fixed by the generator before
// anything runs, from what the documents say compares; known_test.go has those that are not simply "caught".
//
// It shares no code with what it tests: it starts the tapedeck binary, reads its status and its --json, and answers from an endpoint
// of its own. A test holds that.
//
// known_test.go lists what is wrong today and expected to become right, by kind and place; the test fails on what is wrong and not in
// that list, and on an entry of which all of several cases were right, so that the list can only shrink.
//
// Not goals: agents from npm (integration/agents), speed (integration/bench).
package truth
