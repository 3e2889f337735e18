// Package runfiles reads the runs that a daemon keeps, from the files that it writes for people and other tools, without asking
// it: DIR/runs/AGENT/RUN.jsonl, a record a line.
//
// Goals: a trace can be read where no daemon runs, and beside one that does. It writes nothing, takes no lock and builds no path
// of a name that is none (runtrace.CheckName).
//
// Not goals: the index and the log beneath (internal/store), which belong to whoever holds the directory's lock. So a run that
// was open when its daemon was killed reads as one that goes on, until a daemon has been started there again.
//
// A file's last line may be half written: it is not there until it ends.
package runfiles
