package daemon

import (
	"cmp"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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
