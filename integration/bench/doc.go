// Package bench measures what this project promises and writes it down:
//
//	go test -v -timeout 5h ./integration/bench -run TestMeasure -page docs/reference/performance.md     everything; an hour or so, on a machine that does nothing else
//	go test -v ./integration/bench -run TestMeasure -short -rows '^tape/'                     a few rows, quickly
//
// A row is a promise: what is measured, against what, which target it has, and how. Its figure is a ratio to a peer that
// was measured in the same run, or one that stands beside its limit. Rows with a ratio of our own benchmarks run these
// (go test -bench) and read what they report; rows of whole programs run those, a tapedeck built from this checkout among
// them, each server a process of its own, all asked by the same load generator.
//
// A row that needs what this machine lacks says so and what to install, and never vanishes. The peers:
//
//	mitmdump   of mitmproxy, on the PATH
//	aimock     an npm package, below $TAPEDECK_AIMOCK/node_modules; -peers installs it into a temporary directory instead
//	agents     those of integration/agents, below $TAPEDECK_AGENTS, a node_modules; -peers installs them too
//	strace     on the PATH, as is fuse-overlayfs, which needs a /dev/fuse that can be opened, and unshare (util-linux)
//
// Rows of work on files (files/) run what people run, in a work tree, a HOME and a temporary directory of their own, plain
// and recorded in turn, beside it under each of these: columns of their own. What is installed there comes from the npm
// registry once, before anything is measured.
//
// A target that was missed is marked and ends nothing, since machines are noisy; a row that failed fails the test.
//
// Beside the page its figures are kept as JSON, so that a run of some rows (-page with -rows) writes the whole page: the others stand
// as they were measured, with the commit.
//
// Not goals: a history (benchstat has that), a verdict on other machines, figures without what they are held against.
// Everything else lies in a temporary directory that is removed at the end. The file of -page is replaced as a whole.
package bench
