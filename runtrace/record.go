package runtrace

import (
	"encoding/json"
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
	RunID              string
	AgentID            string
	AgentName          *string
	ClientID           *string // what the program calls itself that started the run
	Intent             string  // what the run is for, in words
	OutcomeDescription *string
	StartedAt          string     // RFC 3339; see Time
	Recording          *Recording // of the run, where there is one
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
	RunID   string
	AgentID string
	Status  Status          // Completed or Incomplete
	Outcome json.RawMessage // an object with the keys of Outcome, and others as the agent sent them; nil where it is Incomplete
	EndedAt string          // RFC 3339
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
