// Package runtrace holds the records of an agent's run as its trace keeps them: started, turn, ended; their limits and their
// lines.
//
// Goals: one form for a turn on the wire, in the log and in the run's file; a reader needs no more than a JSON parser; what an
// agent sent stays byte for byte, but for what the limits cut; encoding costs no reflection.
//
// Non-goals: knowing a wire or a store, judging what a turn says.
//
// Grammar: a trace is lines of UTF-8, each one JSON object that ends with a newline, tagged by "record":
//
//	{"record":"started","run_id":…,"agent_id":…,"agent_name"?:…,"intent":…,"outcome_description"?:…,"started_at":…,"recording"?:{"id":…,"path"?:…}}
//	{"record":"turn","index":n,"prompt"?:…,"tool"?:…,"parameters":…,"output"?:…,"error"?:…,"cli_outcome"?:{…},"verifier_verdict":…,"policy_rejected"?:{…}}
//	{"record":"ended","run_id":…,"agent_id":…,"status":"completed"|"incomplete","outcome"?:{…},"ended_at":…}
//
// The keys stand in that order; what is absent has no key. A reader accepts any order and steps over keys that it does not know.
// Times are RFC 3339.
//
// Ordering: one started, then turns whose indices are 0, 1, … without a gap, then at most one ended.
//
// Limits: the constants below. A string of a turn that is longer than MaxString is cut, at any depth of parameters and output,
// never within a character. A line that is longer than MaxLine after that is refused, whole: nothing is ever cut into JSON that
// does not parse.
//
// Compatibility: turns and events have the keys of the public CAR protocol; a key is added (error is ours), never renamed.
package runtrace

// The limits of a trace.
const (
	MaxString = 16 << 10  // bytes of a string, decoded; of a longer one that many stay, and Marker follows
	MaxLine   = 256 << 10 // bytes of a line with its newline
	MaxTurns  = 2000      // of a run
	MaxBatch  = 256       // turns that are appended at once
	MaxName   = 128       // bytes of an agent's or a run's id
)

// Marker ends a string that was cut.
const Marker = "…[truncated]"

// OverLine stands, after Fit, in the place of what did not fit into a line.
const OverLine = "…[truncated: turn exceeded 256 KiB]"
