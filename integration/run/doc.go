// Package run records and replays real programs with a tapedeck built from this checkout, for the tests beside it.
//
// A Box is one program's surroundings: a HOME, a work directory and a recording, all fresh, and an environment that
// holds nothing but PATH, HOME, TERM and what the test sets. Each runs a test in a box as the caller, and as root also
// in one as an unprivileged user. What is missing on the machine skips the test with the reason.
package run
