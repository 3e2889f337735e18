package runview

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// Add takes the next record of the run. Of long texts the beginning is kept. A record of a form that is not known is counted and
// otherwise passed over: a newer daemon may have written it.
func (r *Run) Add(rec runtrace.Record) {
	r.records++
	switch {
	case rec.Started != nil:
		r.start(rec.Started)
	case rec.Turn != nil:
		r.add(MakeTurn(rec.Turn, keptText))
	case rec.Ended != nil:
		r.Status, r.Ended = string(rec.Ended.Status), moment(rec.Ended.EndedAt)
		r.Outcome = outcomeOf(rec.Ended.Outcome)
	}
}

// AddLine is Add of a record as it stands in a trace.
func (r *Run) AddLine(line []byte) error {
	rec, err := runtrace.Parse(line)
	if err != nil {
		return err
	}
	r.Add(rec)
	return nil
}

func (r *Run) start(s *runtrace.Started) {
	r.ID, r.Agent, r.Intent = s.RunID, s.AgentID, clip(s.Intent, keptText)
	r.AgentName, r.Wanted = clip(textAt(s.AgentName), keptText), clip(textAt(s.OutcomeDescription), keptText)
	r.Started, r.Status = moment(s.StartedAt), InProgress
	if s.Recording != nil {
		r.Recording = s.Recording.ID
	}
}

func (r *Run) add(t Turn) {
	r.Turns = append(r.Turns, t)
	r.Marks[t.Mark]++
}

// moment is a time as a trace has it; the zero time where it is none.
func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

func textAt(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// outcomeOf is what an agent said about the end; nil where it said nothing that is an outcome.
func outcomeOf(raw json.RawMessage) *Outcome {
	var o struct {
		Status, Summary string
		Evidence        []json.RawMessage
		Metrics         json.RawMessage
	}
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return &Outcome{Status: o.Status, Summary: clip(o.Summary, keptText), Evidence: len(o.Evidence), Metrics: fieldsOf(o.Metrics, keptText)}
}

// MakeTurn is what can be shown of a turn; keep bytes are kept of each text, 0 keeps all.
func MakeTurn(t *runtrace.Turn, keep int) Turn {
	v := Turn{Index: t.Index, Tool: textAt(t.Tool), Prompt: textAt(t.Prompt), Size: len(t.Output)}
	v.Params, v.Output = fieldsOf(t.Parameters, keep), fieldsOf(t.Output, keep)
	if keep > 0 {
		v.Tool, v.Prompt = strings.Clone(clip(v.Tool, keep)), strings.Clone(clip(v.Prompt, keep))
	}
	if t.Error != nil {
		v.Error = &Field{Name: "error", Text: *t.Error, Len: len(*t.Error)}
		if keep > 0 {
			v.Error.Text = strings.Clone(clip(*t.Error, keep))
		}
	}
	v.judge(t)
	return v
}

// judge says how the turn came out.
func (v *Turn) judge(t *runtrace.Turn) {
	switch {
	case t.PolicyRejected != nil:
		v.Mark, v.Label = Rejected, "rejected"
		v.Rule, v.Param, v.Reason = t.PolicyRejected.Rule, textAt(t.PolicyRejected.Param), t.PolicyRejected.Reason
	case t.CLIOutcome != nil && t.CLIOutcome.Outcome == runtrace.OutcomeTimeout:
		v.Mark, v.Label = TimedOut, "timeout"
	case t.VerifierVerdict == runtrace.VerdictPass:
		v.Mark, v.Label = Passed, "pass"
	case t.VerifierVerdict == runtrace.VerdictFail:
		v.Mark, v.Label = Failed, "fail"
	case t.CLIOutcome != nil && t.CLIOutcome.Code != nil:
		v.Mark, v.Label = Passed, "exit "+strconv.Itoa(*t.CLIOutcome.Code)
		if *t.CLIOutcome.Code != 0 {
			v.Mark = Failed
		}
	case t.CLIOutcome != nil:
		v.Label = clip(t.CLIOutcome.Outcome, 2*labelWide)
	case t.Error != nil:
		v.Mark, v.Label = Failed, "failed"
	case t.Tool == nil:
		v.Mark = Said
	}
}
