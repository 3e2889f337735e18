package runview

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A Markdown writes the records of a run for people, every text of it whole.
//
// Nothing of the run is read as Markdown or obeyed by a terminal: each text stands in a fence longer than any in it, each name in
// a span of code, and control characters as escapes.
type Markdown struct {
	w    io.Writer
	zone *time.Location
	err  error
	run  Run
}

// NewMarkdown returns a Markdown that writes to w, with times of zone.
func NewMarkdown(w io.Writer, zone *time.Location) *Markdown { return &Markdown{w: w, zone: zone} }

// Add writes the next record.
func (m *Markdown) Add(rec runtrace.Record) error {
	switch {
	case rec.Started != nil:
		m.run.start(rec.Started)
		m.started(rec.Started)
	case rec.Turn != nil:
		t := MakeTurn(rec.Turn, 0)
		m.run.Marks[t.Mark]++
		m.run.Turns = append(m.run.Turns, Turn{Index: t.Index}) // they are counted, not held
		m.turn(&t)
	case rec.Ended != nil:
		m.run.Status, m.run.Ended = string(rec.Ended.Status), moment(rec.Ended.EndedAt)
		m.run.Outcome = outcomeOf(rec.Ended.Outcome)
		m.ended(rec.Ended.Outcome)
	}
	return m.err
}

// Close ends the text. It does not close the writer.
func (m *Markdown) Close() error {
	if m.run.Status == InProgress {
		m.printf("## The run goes on\n\n%s so far.\n", turns(len(m.run.Turns)))
	}
	return m.err
}

func (m *Markdown) printf(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

func (m *Markdown) started(s *runtrace.Started) {
	m.printf("# Run %s\n\n", visible.Code(s.RunID))
	m.printf("- agent: %s\n", visible.Code(s.AgentID))
	m.printf("- started: %s\n", m.run.Started.In(m.zone).Format("2006-01-02 15:04:05 MST"))
	if s.Recording != nil {
		m.printf("- recording: %s\n", visible.Code(s.Recording.ID))
	}
	m.printf("\n**Intent**\n\n")
	m.fence("text", s.Intent)
	if s.OutcomeDescription != nil {
		m.printf("**Wanted outcome**\n\n")
		m.fence("text", *s.OutcomeDescription)
	}
}

func (m *Markdown) turn(t *Turn) {
	m.printf("## %s Turn %d: %s", signs[t.Mark].sign, t.Index, visible.Code(t.verb()))
	if t.Label != "" {
		m.printf(", %s", t.Label)
	}
	m.printf("\n\n")
	for _, f := range t.asked() {
		m.field(f, "parameter")
	}
	if t.Mark == Rejected {
		m.printf("**Rejected by %s**: the tool never ran\n\n", visible.Code(t.Rule))
		m.fence("text", t.Reason)
		return
	}
	for _, f := range t.Output {
		m.field(f, "output")
	}
	if t.Error != nil {
		m.field(Field{Text: t.Error.Text}, "error")
	}
}

// shortText is how many bytes of a text stand beside its name.
const shortText = 80

// field is one text under its name, or beside it.
func (m *Markdown) field(f Field, what string) {
	name := "**" + what + "**"
	if f.Name != "" {
		name += " " + visible.Code(f.Name)
	}
	if len(f.Text) <= shortText && !strings.ContainsAny(f.Text, "\r\n") && f.Text != "" {
		m.printf("%s: %s\n\n", name, visible.Code(f.Text))
		return
	}
	m.printf("%s\n\n", name)
	m.fence("text", f.Text)
}

func (m *Markdown) ended(outcome json.RawMessage) {
	m.printf("## Ended: %s\n\n%s\n\n", visible.Code(m.run.Status), m.run.Summary(m.run.Ended))
	if len(outcome) > 0 {
		m.printf("**Outcome**, as the agent said it\n\n")
		m.fence("json", textOf(outcome))
	}
}

// fence writes a text as a block of code.
func (m *Markdown) fence(lang, text string) {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	m.printf("%s\n\n", visible.Fence(lang, visible.Text(text)))
}

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
