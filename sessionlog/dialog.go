package sessionlog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Dialog turns what was said in a conversation into events: what was asked, what the model answered, what its tools gave.
// It numbers the turns and takes each call and each result once, by its id, however often the history repeats it, so that
// one conversation gives one log, whether it is read from a tape or from an agent's own transcript.
//
// The events of a conversation, in order:
//
//	run_started                 Ask, once a prompt
//	llm_completed               Answer, once a turn: turn n is the nth answer
//	tool_requested              of the same turn, where the answer calls tools
//	tool_completed              Results, of the turn that called
//	run_terminal                before the next prompt, and End
//
// It is not safe for concurrent use.
type Dialog struct {
	emit   func(Event) error
	id     string
	runs   int
	open   bool // a run is under way
	turn   int
	began  int // the turn before the run's first
	tokens int64
	turns  map[string]int32 // of each call, by id; negative once its result came
	last   []string         // the calls of the last turn
	counts Counts
}

// Counts are how much a Dialog has passed on.
type Counts struct {
	Runs, Turns, Calls, Results int
}

// The reasons that a Dialog ends a run with.
const (
	ReasonCompleted   = "completed"   // the last answer called no tool
	ReasonInterrupted = "interrupted" // a call was left open, or a prompt unanswered
	ReasonError       = "error"       // what the producer says failed
)

// NewDialog returns a Dialog whose runs are called by id, and which gives every event to emit, in order. An error of emit ends
// the call under way and is returned as it is.
func NewDialog(id string, emit func(Event) error) *Dialog {
	return &Dialog{id: id, emit: emit, turns: map[string]int32{}}
}

// Turn is the number of the last answer, 0 before the first.
func (d *Dialog) Turn() int { return d.turn }

// Counts returns how much was passed on so far.
func (d *Dialog) Counts() Counts { return d.counts }

// Open reports whether the call was made and has no result yet.
func (d *Dialog) Open(id string) bool { return d.turns[id] > 0 }

// Ask begins a run. One that is under way ends first: completed, or interrupted where something of it is open. An empty
// RunID becomes the dialog's id, with #2 and so on from the second run.
func (d *Dialog) Ask(e *RunStarted) error {
	if err := d.End(""); err != nil {
		return err
	}
	d.runs++
	d.counts.Runs++
	if e.RunID == "" {
		e.RunID = d.id
		if d.runs > 1 {
			e.RunID = fmt.Sprintf("%s#%d", d.id, d.runs)
		}
	}
	if e.Criteria == nil {
		e.Criteria = []string{}
	}
	if e.Attachments == nil {
		e.Attachments = []json.RawMessage{}
	}
	d.open, d.began, d.tokens = true, d.turn, 0
	return d.emit(e)
}

// Answer is the next turn: what the model said, and the tokens that it took (0 where nobody counted). Calls that were made
// before, by their id, are not made again. An answer without a prompt begins a run whose goal is unknown.
func (d *Dialog) Answer(e *LLMCompleted, tokens int64) error {
	if !d.open {
		if err := d.Ask(&RunStarted{Common: Common{TapeSeq: e.TapeSeq}}); err != nil {
			return err
		}
	}
	d.turn++
	d.last = d.last[:0]
	d.counts.Turns++
	d.tokens += tokens
	e.Turn = d.turn
	if err := d.emit(e); err != nil {
		return err
	}
	return d.request(e.Message.ToolCalls, e.TapeSeq)
}

// Spend adds tokens to the run under way, for producers that count them apart from the answers.
func (d *Dialog) Spend(tokens int64) {
	if d.open {
		d.tokens += tokens
	}
}

// Request adds calls to the last turn, for producers that write calls apart from the message.
func (d *Dialog) Request(calls []ToolCall, tapeSeq *uint64) error { return d.request(calls, tapeSeq) }

func (d *Dialog) request(calls []ToolCall, tapeSeq *uint64) error {
	var fresh []ToolCall
	for _, c := range calls {
		if d.turns[c.ID] == 0 {
			d.turns[c.ID] = int32(max(d.turn, 1))
			d.last = append(d.last, c.ID)
			fresh = append(fresh, c)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	d.counts.Calls += len(fresh)
	return d.emit(&ToolRequested{Common: Common{Turn: d.turn, TapeSeq: tapeSeq}, Calls: fresh})
}

// Results are what tools gave. One that came before, by the id of its call, is passed by. Results of different turns become one
// event a turn; one of a call that was never made belongs to the last turn.
func (d *Dialog) Results(results []ToolResult, tapeSeq *uint64) error {
	for len(results) > 0 {
		turn, n := d.turnOf(results[0].CallID), 1
		for n < len(results) && d.turnOf(results[n].CallID) == turn {
			n++
		}
		var fresh []ToolResult
		for _, r := range results[:n] {
			if d.turns[r.CallID] >= 0 {
				d.turns[r.CallID] = -int32(max(turn, 1))
				fresh = append(fresh, r)
			}
		}
		results = results[n:]
		if len(fresh) == 0 {
			continue
		}
		d.counts.Results += len(fresh)
		if err := d.emit(&ToolCompleted{Common: Common{Turn: turn, TapeSeq: tapeSeq}, Results: fresh}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dialog) turnOf(call string) int {
	switch t := int(d.turns[call]); {
	case t > 0:
		return t
	case t < 0:
		return -t
	}
	return d.turn
}

// End ends the run that is under way, if any, for a reason; "" tells by what stands open.
func (d *Dialog) End(reason string) error {
	if !d.open {
		return nil
	}
	if reason == "" {
		reason = ReasonCompleted
		if d.turn == d.began || d.unresolved() {
			reason = ReasonInterrupted
		}
	}
	d.open = false
	return d.emit(&RunTerminal{Reason: reason, TurnsUsed: d.turn - d.began, TotalTokens: d.tokens})
}

// unresolved reports whether a call of the last turn has no result.
func (d *Dialog) unresolved() bool {
	return slices.ContainsFunc(d.last, d.Open)
}

// Text returns s as the JSON string that a Message or a result holds. Bytes that are no UTF-8 become U+FFFD.
func Text(s string) json.RawMessage { return jsonscan.AppendText(nil, s) }
