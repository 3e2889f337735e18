package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// The tools whose turns the protocol gives more than parameters and an output.
const (
	toolDriveCLI     = "drive_cli"
	toolCheckOutcome = "check_outcome"
)

// turnOf is a call as a turn, without secrets: hide takes out what is known of them by now. Of a call that has no result the output
// is absent; that of one that failed too, and what it said stands under error.
func turnOf(c *sessionlog.ToolCall, r *sessionlog.ToolResult, hide func([]byte) ([]byte, bool)) (json.RawMessage, error) {
	clean := func(raw json.RawMessage) json.RawMessage {
		if len(raw) == 0 {
			return nil
		}
		b, _ := hide(raw)
		if !json.Valid(b) {
			return jsonscan.AppendText(nil, string(b))
		}
		return b
	}
	name, _ := hide([]byte(c.Name))
	tool := string(name)
	t := &runtrace.Turn{Tool: &tool, Parameters: clean(c.Arguments)}
	if r != nil {
		t.Output = clean(r.Output)
		if r.IsError {
			text := cmp.Or(account.TextOf(t.Output), string(t.Output))
			t.Output, t.Error = nil, &text
		}
	}
	classify(t)
	t.Fit()
	return t.MarshalJSON()
}

// classify adds what the protocol says of the turns of two tools.
func classify(t *runtrace.Turn) {
	switch *t.Tool {
	case toolDriveCLI:
		var in struct{ Prompt *string }
		_ = json.Unmarshal(t.Parameters, &in) // what is no object has none
		t.Prompt = in.Prompt
		var out struct {
			TimedOut bool `json:"timed_out"`
			ExitCode *int `json:"exit_code"`
		}
		switch _ = json.Unmarshal(t.Output, &out); {
		case out.TimedOut:
			t.CLIOutcome = runtrace.TimedOut()
		case out.ExitCode != nil:
			t.CLIOutcome = runtrace.Exited(*out.ExitCode)
		}
	case toolCheckOutcome:
		var out struct{ Passed *bool }
		if _ = json.Unmarshal(t.Output, &out); out.Passed != nil {
			t.VerifierVerdict = runtrace.VerdictFail
			if *out.Passed {
				t.VerifierVerdict = runtrace.VerdictPass
			}
		}
	}
}

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
