package runtrace

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Status is where a run stands.
type Status string

// The statuses of a run.
const (
	InProgress Status = "in_progress"
	Completed  Status = "completed"  // its agent said how it ended, whatever it said
	Incomplete Status = "incomplete" // nobody will say
)

// A Started begins a trace.
type Started struct {
	RunID              string     `json:"run_id"`
	AgentID            string     `json:"agent_id"`
	AgentName          *string    `json:"agent_name"`
	ClientID           *string    `json:"client_id"` // what the program calls itself that started the run
	Intent             string     `json:"intent"`    // what the run is for, in words
	OutcomeDescription *string    `json:"outcome_description"`
	StartedAt          string     `json:"started_at"` // RFC 3339; see Time
	Recording          *Recording `json:"recording"`  // of the run, where there is one
}

// ID names the run.
func (s *Started) ID() ID { return ID{Agent: s.AgentID, Run: s.RunID} }

// A Recording names the recording of a run.
type Recording struct {
	ID   string `json:"id"`
	Path string `json:"path,omitempty"`
}

// An Ended ends a trace.
type Ended struct {
	RunID   string          `json:"run_id"`
	AgentID string          `json:"agent_id"`
	Status  Status          `json:"status"`   // Completed or Incomplete
	Outcome json.RawMessage `json:"outcome"`  // an object with the keys of Outcome, and others as the agent sent them; nil where it is Incomplete
	EndedAt string          `json:"ended_at"` // RFC 3339
}

// An Outcome is what an agent says about the end of its run. Only Status is required of it.
type Outcome struct {
	Status    string          `json:"status"` // success, partial_success, give_up, timeout, failure, done
	Summary   string          `json:"summary,omitempty"`
	Evidence  json.RawMessage `json:"evidence,omitempty"`  // a list
	Metrics   json.RawMessage `json:"metrics,omitempty"`   // an object
	Timestamp string          `json:"timestamp,omitempty"` // RFC 3339
}

// OutcomeStatuses are what an agent may say.
var OutcomeStatuses = []string{"success", "partial_success", "give_up", "timeout", "failure", "done"}

// A Record is one line of a trace. Exactly one of its fields is set.
type Record struct {
	Started *Started
	Turn    *Turn
	Ended   *Ended
}

// Time is a moment as a trace writes it: UTC, in microseconds.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// A Turn is one step of an agent. A nil field is absent. As JSON it is an object of the keys that the package comment lists,
// without "record"; it is read leniently: any of them may be absent or null, others are stepped over. Only a key that stands twice is an error.
type Turn struct {
	Index      int             // the place among the run's turns, from 0; whoever keeps the run sets it
	Prompt     *string         `json:"prompt"`
	Tool       *string         `json:"tool"`
	Parameters json.RawMessage `json:"parameters"` // any JSON; nil is null
	Output     json.RawMessage `json:"output"`     // any JSON
	Error      *string         // why there is no output: the call failed, ran out of time, or was refused before any policy judged it
	CLIOutcome *CLIOutcome     `json:"cli_outcome"`
	// VerifierVerdict is VerdictPass, VerdictFail or VerdictNotRun; "" is the last. Others are kept as they came.
	VerifierVerdict string          `json:"verifier_verdict"`
	PolicyRejected  *PolicyRejected `json:"policy_rejected"`

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

// An ID names a run: whose it is, and which.
type ID struct {
	Agent string `json:"agent_id"`
	Run   string `json:"run_id"`
}

func (id ID) String() string { return id.Agent + "/" + id.Run }

// Check reports the first of both names that is none. The error is a *NameError.
func (id ID) Check() error {
	if err := CheckName("agent_id", id.Agent); err != nil {
		return err
	}
	return CheckName("run_id", id.Run)
}

// A NameError says that an id is not a plain name.
type NameError struct {
	What string // the key that held it: agent_id, run_id
	Name string // what came
}

func (e *NameError) Error() string {
	const form = "expected a letter or digit, then at most 127 of letters, digits, '.', '_', ':', '-'"
	shown := e.Name
	if len(shown) > MaxName {
		shown = shown[:MaxName]
	}
	return fmt.Sprintf("%s is not a plain name: %s, got %s (%d bytes)", e.What, form, strconv.QuoteToASCII(shown), len(e.Name))
}

// CheckName reports whether s may name an agent or a run, and so a directory or a file: [A-Za-z0-9][A-Za-z0-9._:-]{0,127}, ASCII
// alone. What is the key that held it. The error is a *NameError.
func CheckName(what, s string) error {
	ok := len(s) > 0 && len(s) <= MaxName && alphanumeric(s[0])
	for i := 1; ok && i < len(s); i++ {
		c := s[i]
		ok = alphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '-'
	}
	if !ok {
		return &NameError{what, s}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// fileEnd is how the name of a run's file ends.
const fileEnd = ".jsonl"

// File is where the trace of a run stands below the directory runs of a daemon's data: AGENT/RUN.jsonl. The id must have passed
// Check: nothing else ever becomes a path.
func (id ID) File() string {
	return filepath.Join(fileName(id.Agent, runtime.GOOS), fileName(id.Run, runtime.GOOS)+fileEnd)
}

// FileID is the ID whose File has that directory's and that file's name. It reports false where there is none.
func FileID(dir, file string) (ID, bool) {
	run, ok := strings.CutSuffix(file, fileEnd)
	id := ID{Agent: nameOf(dir, runtime.GOOS), Run: nameOf(run, runtime.GOOS)}
	return id, ok && id.Check() == nil
}

// colon is how a file has the one character of names that Windows has another use for.
const colon = "%3A"

func fileName(name, system string) string {
	if system == "windows" {
		return strings.ReplaceAll(name, ":", colon)
	}
	return name
}

func nameOf(file, system string) string {
	if system == "windows" {
		return strings.ReplaceAll(file, colon, ":")
	}
	return file
}
