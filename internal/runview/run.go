package runview

import (
	"encoding/json"
	"fmt"
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
