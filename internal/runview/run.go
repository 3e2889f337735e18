package runview

import (
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// The statuses of a run, as text.
const (
	InProgress = string(runtrace.InProgress)
	Completed  = string(runtrace.Completed)
	Incomplete = string(runtrace.Incomplete)
)

// A Run is what is known of a run by its records so far. Zero is a run of which nothing is known.
type Run struct {
	ID        string
	Agent     string
	AgentName string // "" where the agent has none
	Intent    string
	Wanted    string // what outcome was asked for, "" for none
	Recording string // the recording that it is made beside, "" for none
	Started   time.Time
	Ended     time.Time // zero while it goes on
	Status    string
	Outcome   *Outcome // what the agent said of it; nil for nothing
	Turns     []Turn
	Marks     [len(signs)]int // how many turns have each mark

	records int
}

// An Outcome is how an agent says that its run went.
type Outcome struct {
	Status   string // success, partial_success, give_up, timeout, failure, done
	Summary  string
	Evidence int // pieces of it
	Metrics  []Field
}

// Records is how many records were added: the cursor of the next.
func (r *Run) Records() int { return r.records }

// Took is for how long the run went on until now.
func (r *Run) Took(now time.Time) time.Duration {
	switch {
	case r.Started.IsZero():
		return 0
	case !r.Ended.IsZero():
		now = r.Ended
	}
	return max(0, now.Sub(r.Started))
}
