// Package runview shows a run to people: a line a turn, a whole turn, the picture of a run that goes on, and a run in the
// forms that other tools read.
//
// Goals: who looks at a run sees at once what the agent did, what was refused and what failed; nothing that a run holds steers
// the terminal of who looks at it. Everything here is a pure function of records: a Run takes them one after the other and keeps
// of each turn what can be shown, in bounded memory; Frame draws it as lines of a size. Nobody is asked for the time or for the
// size of anything.
//
// Not goals: where records come from, terminals, keys.
//
// Memory: MaxTurns turns, of each at most a few texts of keptText bytes.
package runview

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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

// End is how a run ended, as a sign, how it is drawn, and in words.
func (r *Run) End() (sign string, s style, words string) {
	if r.Status != Completed {
		return "!", broken, strings.ReplaceAll(r.Status, "_", " ")
	}
	if r.Outcome == nil {
		return "✓", green, Completed
	}
	words = strings.ReplaceAll(r.Outcome.Status, "_", " ")
	switch r.Outcome.Status {
	case "success", "done":
		return "✓", green, words
	case "failure":
		return "✗", red, words
	}
	return "!", yellow, words
}

// state is how the run stands, in words, and how they are drawn.
func (r *Run) state() (s style, words string) {
	if r.Status == InProgress {
		return cyan, "in progress"
	}
	if _, s, words = r.End(); r.Status == Completed && words != Completed {
		words = Completed + ": " + words
	}
	return s, words
}

// CountsText is how many turns there are and how they came out: "12: 9 passed, 1 failed".
func (r *Run) CountsText() string {
	text, sep := fmt.Sprint(len(r.Turns)), ": "
	for _, c := range counted {
		if n := r.Marks[c.mark]; n > 0 {
			text += fmt.Sprintf("%s%d %s", sep, n, c.word)
			sep = ", "
		}
	}
	return text
}

// Summary is one line about how a run ended: "completed: success, 12 turns (1 rejected), took 42s".
func (r *Run) Summary(now time.Time) string {
	_, text := r.state()
	text += ", " + turns(len(r.Turns))
	if _, counts, ok := strings.Cut(r.CountsText(), ": "); ok {
		text += " (" + counts + ")"
	}
	return text + fmt.Sprintf(", took %s", Duration(r.Took(now)))
}

// A Mark says how a turn came out, as far as the daemon knows: most tools are judged by nobody.
type Mark uint8

// The marks.
const (
	Ran      Mark = iota // a tool gave its output; nobody judged it
	Said                 // no tool was called
	Passed               // exit 0, or a check that passed
	Failed               // another exit, a check that failed, or a call that gave no output
	TimedOut             // the program was ended by its deadline
	Rejected             // a policy denied it: the tool never ran
)

var signs = [...]struct {
	sign  string
	style style
}{
	Ran: {"•", plain}, Said: {"›", dim}, Passed: {"✓", green}, Failed: {"✗", red}, TimedOut: {"!", yellow}, Rejected: {"⊘", refused},
}

// A Turn is what can be shown of one.
type Turn struct {
	Index  int
	Tool   string // "" for none
	Prompt string
	Params []Field
	Output []Field
	Mark   Mark
	Label  string // of the mark, in a few characters: "exit 1"
	Rule   string // of a policy's denial
	Param  string // which it spoke against, "" for none
	Reason string
	Error  *Field // why there is no output; nil where nothing is said
}

// verb is what a turn without a tool is listed as.
func (t *Turn) verb() string {
	if t.Tool == "" {
		return "(no tool)"
	}
	return t.Tool
}

// gist is a turn on one line: what was asked, and what came of it.
func (t *Turn) gist() string {
	const most = 600 // bytes: no line shows more
	asked := t.Prompt
	if asked == "" {
		asked = inline(t.Params, most)
	}
	came := inline(t.Output, most)
	if t.Error != nil {
		came = clip(t.Error.Text, most)
	}
	asked, came = oneLine(clip(asked, most)), oneLine(came)
	switch {
	case t.Mark == Rejected: // why it was is what people look for
		return strings.TrimSuffix(oneLine(t.denial())+" ← "+asked, " ← ")
	case came == "":
		return asked
	case asked == "":
		return "→ " + came
	}
	return asked + " → " + came
}

// denial says who denied a turn and why.
func (t *Turn) denial() string {
	text := t.Rule
	if t.Param != "" {
		text += fmt.Sprintf(" (%s)", t.Param)
	}
	if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// MakeTurn is what can be shown of a turn; keep bytes are kept of each text, 0 keeps all.
func MakeTurn(t *runtrace.Turn, keep int) Turn {
	v := Turn{Index: t.Index, Tool: textAt(t.Tool), Prompt: textAt(t.Prompt)}
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

// asked is what the turn was given.
func (t *Turn) asked() []Field {
	var out []Field
	if t.Prompt != "" {
		out = append(out, Field{Name: "prompt", Text: t.Prompt, Len: len(t.Prompt)})
	}
	for _, f := range t.Params {
		if f.Name != "prompt" || f.Text != t.Prompt { // said already
			out = append(out, f)
		}
	}
	return out
}

// came is what came of the turn, under names that show it.
func (t *Turn) came() []Field {
	if t.Mark == Rejected {
		return []Field{{Name: "→ denied", Text: t.denial(), Len: len(t.denial())}}
	}
	out := make([]Field, 0, len(t.Output)+1)
	for _, f := range t.Output {
		f.Name = strings.TrimSuffix("→ "+f.Name, " ")
		out = append(out, f)
	}
	if t.Error != nil {
		f := *t.Error
		f.Name = "→ " + f.Name
		out = append(out, f)
	}
	return out
}

// Line is a turn as one line of text for a place that is no terminal. Nothing of it is cut but what is very long.
func (t *Turn) Line(colour bool) string {
	g := grid{index: 4, label: labelWide, tool: 16, gap: 2}
	return g.listRow(newRow(unlimited, colour), t, false).String()
}
