package daemon

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// How a recorded run ends, in the words of the protocol.
const (
	outcomeSuccess = "success" // the program ended with 0
	OutcomeFailure = "failure"
)

// evidence is one piece of an outcome's.
type evidence struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
	Data        any    `json:"data"`
}

// A End is how a run ended. Of one that was not recorded Err says why, and nothing else counts.
type End struct {
	Err        error
	Exit       recording.Exit
	SealRoot   string // base64; "" where the recording is not sealed
	SealKey    string
	ModelCalls int
	Took       time.Duration
}

// outcome is what a run came to: how its program ended, and where the recording lies that proves it.
func (d *Run) outcome(e *End) *rpcapi.Outcome {
	o := &rpcapi.Outcome{Status: OutcomeFailure, Timestamp: runtrace.Time(time.Now())}
	if e.Err != nil {
		o.Summary = "not recorded: " + d.text(e.Err.Error())
		return o
	}
	if e.Exit == (recording.Exit{}) {
		o.Status = outcomeSuccess
	}
	o.Summary = fmt.Sprintf("exit %d", e.Exit.Code)
	if e.Exit.Signal != "" {
		o.Summary += " (" + e.Exit.Signal + ")"
	}
	evidenced := map[string]any{"id": d.start.Recording.ID, "path": d.start.Recording.Path}
	about := "recorded, and not sealed"
	if e.SealRoot != "" {
		about = "recorded, and sealed"
		evidenced["seal_root"], evidenced["seal_key"] = e.SealRoot, e.SealKey
	}
	o.Evidence, _ = json.Marshal([]evidence{ // of these values it cannot fail
		{"stop_reason", o.Summary, e.Exit},
		{"external_verification", about, evidenced},
	})
	o.Metrics, _ = json.Marshal(map[string]int64{
		"turns": int64(d.Named.Turns), "tool_calls": int64(len(d.book.byID)), "llm_calls": int64(e.ModelCalls), "duration_ms": e.Took.Milliseconds(),
	})
	return o
}
