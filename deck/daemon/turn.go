package daemon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A toldCall is a tool call of the main conversation on its way to the daemon.
type toldCall struct {
	call   sessionlog.ToolCall    // without arguments once it was told
	result *sessionlog.ToolResult // nil while it has none, and once it was told
	told   cas.Digest             // of the turn as it was told; zero before
	lost   bool                   // the daemon refused it
	stands bool                   // the whole tape has it: before its end it may only have looked so
}

func (c *toldCall) waits() bool { return c.told.IsZero() && !c.lost }

// forget drops what was told.
func (c *toldCall) forget() { c.call.Arguments, c.result = nil, nil }

// A callBook keeps what was told of the calls of a conversation. A call is known by its id, however often it is heard.
type callBook struct {
	byID  map[string]*toldCall
	open  []*toldCall // that wait, in the order of the calls
	fresh []*toldCall // whose verdict was not asked for, in the same order
	bytes int         // of the results that wait
	// again is told, when the whole tape is read at the end, of a call that was told before and that has its arguments and result
	// once more; nil before.
	again func(*toldCall) error
}

func (b *callBook) hear(e sessionlog.Event) error {
	switch e := e.(type) {
	case *sessionlog.ToolRequested:
		for i := range e.Calls {
			b.made(&e.Calls[i])
		}
	case *sessionlog.ToolCompleted:
		for i := range e.Results {
			if err := b.given(&e.Results[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *callBook) made(c *sessionlog.ToolCall) {
	known := b.byID[c.ID]
	switch {
	case known == nil:
		known = &toldCall{call: sessionlog.ToolCall{ID: c.ID, Name: c.Name, Arguments: bytes.Clone(c.Arguments)}}
		b.byID[c.ID] = known
		b.open, b.fresh = append(b.open, known), append(b.fresh, known)
	case b.again != nil:
		known.call.Arguments = bytes.Clone(c.Arguments)
	}
	known.stands = known.stands || b.again != nil
}

func (b *callBook) given(r *sessionlog.ToolResult) error {
	c := b.byID[r.CallID]
	if c == nil || !c.waits() && b.again == nil {
		return nil
	}
	if c.result == nil && c.waits() {
		b.bytes += len(r.Output)
	}
	c.result = &sessionlog.ToolResult{CallID: r.CallID, Output: bytes.Clone(r.Output), IsError: r.IsError}
	if c.waits() {
		return nil
	}
	defer c.forget()
	return b.again(c)
}

// ready returns the calls that wait and whose result is known, in the order of the calls. One without a result holds nobody up:
// where its conversation has gone on, none will come.
func (b *callBook) ready() []*toldCall {
	var out []*toldCall
	for _, c := range b.open {
		if c.result != nil {
			out = append(out, c)
		}
	}
	return out
}

// tidy strikes out what waits no longer.
func (b *callBook) tidy() {
	left := b.open[:0]
	b.bytes = 0
	for _, c := range b.open {
		if !c.waits() {
			c.forget()
			continue
		}
		if c.result != nil {
			b.bytes += len(c.result.Output)
		}
		left = append(left, c)
	}
	clear(b.open[len(left):])
	b.open = left
}

// gapList are what a daemon does not have of a run, or has otherwise.
type gapList struct {
	refusals    []string // each reason once
	refused     map[string]int
	unjudgeable string // why no verdict is asked for any more; "" while they are
	unjudged    int
	why         string // of the first without a verdict
	changed     int    // turns that stand on the tape otherwise by now
}

func (g *gapList) refuse(why string) {
	if g.refused == nil {
		g.refused = make(map[string]int)
	}
	if g.refused[why] == 0 {
		g.refusals = append(g.refusals, why)
	}
	g.refused[why]++
}

func (g *gapList) unjudge(why string) {
	if g.unjudged++; g.why == "" {
		g.why = why
	}
}

// list says them. err is why the daemon did not answer at last; nil where it did.
func (g *gapList) list(d *Run, err error) []string {
	out := []string{}
	for _, why := range g.refusals {
		said := why
		if why == DroppedLimit {
			said = fmt.Sprintf("a run has %d at most", runtrace.MaxTurns)
		}
		out = append(out, fmt.Sprintf("%s that the daemon did not take: %s", turns(g.refused[why]), said))
	}
	var waiting, beside int
	for _, c := range d.book.byID {
		switch {
		case c.waits() && (c.stands || err != nil):
			waiting++
		case !c.told.IsZero() && !c.stands:
			beside++
		}
	}
	if waiting > 0 {
		out = append(out, fmt.Sprintf("%s that the daemon did not get: %v", turns(waiting), err))
	}
	if beside > 0 {
		out = append(out, turns(beside)+" that the daemon has of another conversation: while it went on that looked like the main one")
	}
	if g.changed > 0 {
		out = append(out, turns(g.changed)+" that the daemon has otherwise than the tape: what is hidden there was not known as a secret yet")
	}
	if n := g.unjudged + len(d.book.fresh); n > 0 {
		why := g.why
		switch {
		case why == "" && err != nil:
			why = err.Error()
		case why == "":
			why = "the daemon did not answer before the tape ended"
		}
		out = append(out, fmt.Sprintf("verdicts of its policies on %s: %s", counted(n, "tool call"), why))
	}
	if len(d.Named.Continued) > 0 {
		all := slices.Concat([]string{d.Named.RunID}, d.Named.Continued)
		out = append(out, fmt.Sprintf("the daemon was started again: of the runs %v the last alone is complete", all))
	}
	return out
}

func turns(n int) string { return counted(n, "turn") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

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
