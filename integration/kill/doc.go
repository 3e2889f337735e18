// Package kill kills what records, what holds the jail and what is recorded, at random moments, and breaks the disk under a
// recording.
//
// Its tests run with the build tag kill. KILL_SEED repeats a run, as far as the moments are the test's; TAPEDECK_LONG=1 tries
// 200 moments of each, and 8 else. After each moment: what is on the disk loads and verifies, an answer that the program got
// whole is on the tape, one that was cut is there as far as it came, nothing runs a second later, and no temporary directory
// of the killed one is left once the next command has run.
package kill
