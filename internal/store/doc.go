// Package store keeps runs: acknowledged means on the disk.
//
// Goals: a turn that was acknowledged is there after any crash, once, in order, in its own run; thousands of runs share one fsync;
// the files that people read are plain lines; a slow reader holds nobody up; a PostgreSQL store can stand in its place, held to the
// same behaviour by conformance_test.go.
//
// Non-goals: who may read or write which run (the daemon decides), what a turn says (package runtrace), forgetting runs.
//
// Store is the promise, Disk keeps it in a directory.
//
// # A directory
//
//	lock            held by the process that has it open
//	log/            package seglog: every entry (entry.go) of all runs; the truth
//	runs/A/R.jsonl  the lines of run R of agent A
//	index.sqlite    a row a run, and verdicts; written behind, made again from the log at need
//	synced          the position of the log up to which the run files are known to be on the disk
//
// # One append
//
// The run's lock is taken, the index given from the live position, the lines encoded, the entry queued in the log, the lock let go.
// When the block that holds the entry is synced, the log's committer makes the entry part of the run's durable state and wakes
// the caller, who writes the lines to the run's file, hands them to subscribers, and returns. Entries of a run reach its file in the
// order of the log: whoever comes first writes all that is due.
//
// When a write of the log fails, everything queued fails, and each run goes back to its durable state before it takes more (the
// log's epochs see to that). When a run's file cannot be written, its lines wait in memory, and the run takes no more until they
// are written.
//
// # Recovery
//
// Each entry holds the offset of its lines in the run's file and the CRC of what stands before them. Open reads the log from the lower
// of two marks, that of the index and that of the files, takes in what the index lacks, compares the files that had entries since
// the last sync, and after an unclean end the length of all others; what differs is written again from the log, in one pass.
//
// The files are synced all at once (syncfs) every four segments of the log, and at Close. Trace compares length and CRC of what
// it reads.
//
// # Memory
//
// A run is in memory while it is open, until the index has its end, and while somebody looks at it; its turns are not.
package store
