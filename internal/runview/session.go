package runview

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A Session writes the records of a run as a session log: what was asked of the agent, each tool call with its result or its
// denial, how it ended. Turn n of the run is turn n+1 of the log. How a command line ended and what a check said stand as further
// keys of the result, cli_outcome and verifier_verdict. A turn without a tool is an answer: its output is what was said, its
// prompt a further key.
type Session struct {
	w     io.Writer
	seq   uint64
	turns int
	ended bool
	line  []byte
}

// NewSession returns a Session that writes to w.
func NewSession(w io.Writer) *Session { return &Session{w: w} }

// Add writes what the next record of the run comes to.
func (s *Session) Add(rec runtrace.Record) error {
	switch {
	case rec.Started != nil:
		return s.started(rec.Started)
	case rec.Turn != nil:
		return s.turn(rec.Turn)
	case rec.Ended != nil:
		return s.end(reasonOf(rec.Ended))
	}
	return nil
}

// Close ends the log of a run that goes on as one that was interrupted. It does not close the writer.
func (s *Session) Close() error {
	if s.ended {
		return nil
	}
	return s.end(sessionlog.ReasonInterrupted)
}

func (s *Session) put(e sessionlog.Event) error {
	line, err := sessionlog.AppendEnvelope(s.line[:0], s.seq, e, nil)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	s.line = line
	s.seq++
	_, err = s.w.Write(s.line)
	return err
}

func (s *Session) started(r *runtrace.Started) error {
	e := &sessionlog.RunStarted{RunID: r.RunID, AgentID: r.AgentID, Goal: r.Intent}
	if r.OutcomeDescription != nil {
		e.Criteria = []string{*r.OutcomeDescription}
	}
	return s.put(e)
}

func (s *Session) turn(t *runtrace.Turn) error {
	s.turns++
	at := sessionlog.Common{Turn: t.Index + 1}
	if t.Tool == nil {
		if t.Prompt != nil {
			at.Extra = []sessionlog.Field{{Name: "prompt", Value: sessionlog.Text(*t.Prompt)}}
		}
		return s.put(&sessionlog.LLMCompleted{Common: at, Message: sessionlog.Message{Role: "assistant", Content: said(t.Output)}})
	}
	id := fmt.Sprintf("turn-%d", t.Index)
	call := sessionlog.ToolCall{ID: id, Name: *t.Tool, Arguments: t.Parameters}
	if len(call.Arguments) == 0 || string(call.Arguments) == "null" {
		call.Arguments = json.RawMessage("{}")
	}
	if err := s.put(&sessionlog.ToolRequested{Common: at, Calls: []sessionlog.ToolCall{call}}); err != nil {
		return err
	}
	if p := t.PolicyRejected; p != nil {
		return s.put(&sessionlog.ToolDenied{Common: at, CallID: id, ToolName: *t.Tool, Reason: p.Rule + ": " + p.Reason})
	}
	return s.put(&sessionlog.ToolCompleted{Common: at, Results: []sessionlog.ToolResult{resultOf(id, t)}})
}

// said is an output as the content of a message: text, whatever JSON it is.
func said(output json.RawMessage) json.RawMessage {
	if len(output) == 0 || string(output) == "null" {
		return sessionlog.Text("")
	}
	return sessionlog.Text(textOf(output))
}

// resultOf is what came of a call. It is an error where a program or a check says so; nobody knows of other tools.
func resultOf(id string, t *runtrace.Turn) sessionlog.ToolResult {
	v := MakeTurn(t, 1)
	r := sessionlog.ToolResult{CallID: id, Output: said(t.Output), IsError: v.Mark == Failed || v.Mark == TimedOut}
	if len(t.Output) == 0 && t.Error != nil {
		r.Output = sessionlog.Text(*t.Error)
	}
	if t.CLIOutcome != nil {
		b, err := json.Marshal(t.CLIOutcome)
		if err == nil {
			r.Extra = append(r.Extra, sessionlog.Field{Name: "cli_outcome", Value: b})
		}
	}
	if t.VerifierVerdict != runtrace.VerdictNotRun {
		r.Extra = append(r.Extra, sessionlog.Field{Name: "verifier_verdict", Value: sessionlog.Text(t.VerifierVerdict)})
	}
	return r
}

func (s *Session) end(reason string) error {
	s.ended = true
	return s.put(&sessionlog.RunTerminal{Reason: reason, TurnsUsed: s.turns})
}

// reasonOf is how a session log says that a run ended.
func reasonOf(e *runtrace.Ended) string {
	if e.Status != runtrace.Completed {
		return sessionlog.ReasonInterrupted
	}
	o := outcomeOf(e.Outcome)
	if o == nil {
		return sessionlog.ReasonCompleted
	}
	switch o.Status {
	case "success", "partial_success", "done":
		return sessionlog.ReasonCompleted
	}
	return sessionlog.ReasonError
}
