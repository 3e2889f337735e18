package runtrace

import "encoding/json"

// A Turn is one step of an agent. A nil field is absent. As JSON it is an object of the keys that the package comment lists,
// without "record"; it is read leniently: any of them may be absent or null, others are stepped over.
type Turn struct {
	Index      int // the place among the run's turns, from 0; whoever keeps the run sets it
	Prompt     *string
	Tool       *string
	Parameters json.RawMessage // any JSON; nil is null
	Output     json.RawMessage // any JSON
	Error      *string         // why there is no output: the call failed, ran out of time, or was refused before any policy judged it
	CLIOutcome *CLIOutcome
	// VerifierVerdict is VerdictPass, VerdictFail or VerdictNotRun; "" is the last. Others are kept as they came.
	VerifierVerdict string
	PolicyRejected  *PolicyRejected

	Valid bool // Parameters and Output were read as JSON, so that AppendLine does not look again; not itself on the wire
}

// The verdicts of a turn.
const (
	VerdictPass   = "pass"
	VerdictFail   = "fail"
	VerdictNotRun = "not_run"
)

// A CLIOutcome is how a command line ended that a turn drove.
type CLIOutcome struct {
	Outcome string `json:"outcome"`        // OutcomeExited, OutcomeTimeout
	Code    *int   `json:"code,omitempty"` // the exit code
}

// How a command line ends.
const (
	OutcomeExited  = "exited"
	OutcomeTimeout = "timeout"
)

// Exited is the outcome of a command line that ended by itself.
func Exited(code int) *CLIOutcome { return &CLIOutcome{Outcome: OutcomeExited, Code: &code} }

// TimedOut is the outcome of a command line that did not end in time.
func TimedOut() *CLIOutcome { return &CLIOutcome{Outcome: OutcomeTimeout} }

// A PolicyRejected says why a turn's action never ran.
type PolicyRejected struct {
	Rule   string  `json:"rule"`            // holds the policy's name
	Param  *string `json:"param,omitempty"` // the parameter that it is about
	Reason string  `json:"reason"`
}
