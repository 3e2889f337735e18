package sessionlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Code names what a crash left in a log.
type Code string

// What Examine finds, and what a repaired copy has in its place. "Closed" means that the copy has an event that says so, with the
// code under its key "repaired"; nothing else in it is made up.
const (
	// CallWithoutResult: a call that was asked for, was not denied or cancelled, does not wait for a suspension to end, and
	// never got a result. Closed by a result with is_error at the end of its turn: before the next answer, or the end of the
	// run or of the log. A call that only the answer names, because the crash came before it was asked for, is asked for first.
	CallWithoutResult Code = "call_without_result"
	// ResultTwice: a second result of one call. The copy keeps the first.
	ResultTwice Code = "result_twice"
	// ResultWithoutCall: a result of a call that nobody asked for. Closed by a call of that id, without a name, before it.
	ResultWithoutCall Code = "result_without_call"
	// TurnCut: the log, or the next run, begins in the middle of a turn: the prompt, calls or results wait for an answer. The
	// end of the run closes it; nothing is said in the model's name.
	TurnCut Code = "turn_cut"
	// RunWithoutEnd: a run that neither ended nor was suspended when the log or the next run begins. Closed by a run_terminal
	// whose reason is "interrupted".
	RunWithoutEnd Code = "run_without_end"
	// TornLine: the last line has no end and is no event. The copy is without it.
	TornLine Code = "torn_line"
)

// A Finding is one thing that is not as a log that came to its end has it.
type Finding struct {
	Code    Code        `json:"code"`
	Turn    json.Number `json:"turn"`              // of the event that it is about, as it stands there; 0 for none
	CallID  string      `json:"call_id,omitempty"` // the call, where it is about one
	Line    int         `json:"line"`              // of that event, from 1; in a list of events, that of its beginning
	Message string      `json:"message"`           // for people: what was expected, what came, what the copy has there
}

// Findings are what Examine found in one log, and what a repaired copy of it needs.
type Findings struct {
	List []Finding // by line

	entries int // of the log
	inserts []insert
	drops   map[int][]int // of an entry, by its index: the results that go, by their index
}

// insert is an event that a copy has before an entry.
type insert struct {
	before int // index of the entry; that after the last for the end
	order  int // what comes first before one entry
	event  []byte
}

const (
	orderRequest = iota
	orderResult
	orderEnd
)

// examiner goes through a log once. What it keeps of a call that is done is its id and its turn.
type examiner struct {
	view  eventView
	index int // of the entry
	line  int
	calls map[string]known
	open  []*openCall // in order; some of them have their result by now
	fresh int         // how many at the end of open belong to a turn that may still go on
	lasts []string    // the calls that the suspension waits for

	run     bool // one is under way
	runLine int
	answers int // in this run
	due     string
	dueTurn json.Number
	dueLine int
	waits   bool // suspended

	f Findings
}

// known is a call that was asked for, or whose result came without.
type known struct {
	turn json.Number // in which it was asked for
	open *openCall   // nil once its result came
}

// openCall is a call without a result.
type openCall struct {
	id    string
	turn  json.Number
	line  int
	raw   []byte // the call as it stands in the answer, where it was not asked for yet
	state callState
	at    int // index of the entry before which its turn ended; -1 while that goes on
}

type callState uint8

const (
	callOpen    callState = iota
	callSettled           // denied or cancelled: it needs no result
	callWaits             // for a suspension to end
	callDone
)

func newExaminer() *examiner {
	return &examiner{calls: map[string]known{}, f: Findings{drops: map[int][]int{}}}
}

func (x *examiner) add(event []byte, line int) error {
	v := &x.view
	if err := v.read(event); err != nil {
		return err
	}
	x.line = line
	turn := json.Number(v.number(fieldTurn))
	switch Kind(v.kind) {
	case KindRunStarted:
		x.endRun("before the next run begins")
		x.resume()
		x.run, x.runLine, x.answers, x.waits = true, line, 0, false
		x.owe("the prompt has no answer", turn)
	case KindLLMCompleted:
		x.endTurn()
		x.answers++
		x.owe("", turn)
		v.calls(func(id string, raw []byte) { x.ask(id, turn, raw) })
	case KindToolRequested:
		v.objects(fieldCalls, "id", func(id string, _ []byte) { x.ask(id, turn, nil) })
	case KindToolCompleted:
		x.results(turn)
		x.owe("the results have no answer", turn)
	case "tool_denied":
		x.settle(v.text(fieldCallID))
	case "operation_cancelled":
		v.texts(fieldPendingCallIDs, x.settle)
	case "suspended":
		x.waits = true
		v.texts(fieldPendingCalls, x.wait)
	case "resumed":
		x.resume()
		v.texts(fieldDenied, x.settle)
	case KindRunTerminal:
		x.endTurn()
		x.run, x.waits = false, false
	}
	return v.err()
}

// owe notes what the run waits for now; "" for nothing.
func (x *examiner) owe(what string, turn json.Number) {
	x.due, x.dueTurn, x.dueLine = what, turn, x.line
}

// ask notes a call. An id that was done may be given again in a later turn: then it is another call. Within one turn, the answer
// and the request name the same one. A call without an id cannot be told from others and is let be.
func (x *examiner) ask(id string, turn json.Number, raw []byte) {
	if id == "" {
		return
	}
	x.owe("calls have no result", turn)
	k, there := x.calls[id]
	if there && k.turn == turn {
		if k.open != nil && raw == nil {
			k.open.raw = nil
		}
		return
	}
	if k.open != nil && k.open.at < 0 {
		k.open.at = x.index
	}
	c := &openCall{id: id, turn: turn, line: x.line, at: -1}
	if raw != nil {
		c.raw = append([]byte(nil), raw...)
	}
	x.calls[id] = known{turn, c}
	x.open = append(x.open, c)
	x.fresh++
}

func (x *examiner) results(turn json.Number) {
	n := 0
	x.view.objects(fieldResults, "call_id", func(id string, _ []byte) {
		k, there := x.calls[id]
		switch {
		case id == "":
		case !there:
			x.find(ResultWithoutCall, turn, id, x.line, "a result of a call that nobody asked for; the copy asks for it first")
			x.put(x.index, orderRequest, requestEvent(turn, requestOf(id), ResultWithoutCall))
			x.calls[id] = known{turn: turn}
		case k.open == nil:
			x.find(ResultTwice, turn, id, x.line, "the call has a result already; the copy keeps the first")
			x.f.drops[x.index] = append(x.f.drops[x.index], n)
		default:
			k.open.state = callDone
			x.calls[id] = known{turn: k.turn}
		}
		n++
	})
}

func (x *examiner) settle(id []byte) {
	if c := x.calls[string(id)].open; c != nil {
		c.state = callSettled
	}
}

func (x *examiner) wait(id []byte) {
	if c := x.calls[string(id)].open; c != nil && c.state == callOpen {
		c.state = callWaits
		x.lasts = append(x.lasts, c.id)
	}
}

func (x *examiner) resume() {
	x.waits = false
	for _, id := range x.lasts {
		if c := x.calls[id].open; c != nil && c.state == callWaits {
			c.state = callOpen
		}
	}
	x.lasts = x.lasts[:0]
}

// endTurn says that what was asked for until now belongs before the entry that is read.
func (x *examiner) endTurn() {
	for _, c := range x.open[len(x.open)-x.fresh:] {
		if c.at < 0 {
			c.at = x.index
		}
	}
	x.fresh = 0
	if len(x.open) > 2*minSweep {
		x.open = slices.DeleteFunc(x.open, func(c *openCall) bool { return c.state == callDone })
	}
}

// minSweep is from how many calls on those that are done are forgotten, so that a long log without damage costs no list of them.
const minSweep = 512

// endRun closes a run that has no end of its own.
func (x *examiner) endRun(when string) {
	x.endTurn()
	if !x.run || x.waits && when == "" {
		return
	}
	if when == "" {
		when = "before the log ends"
	}
	if x.due != "" {
		x.find(TurnCut, x.dueTurn, "", x.dueLine, x.due+" "+when+"; the copy ends the run there")
	}
	x.find(RunWithoutEnd, "0", "", x.runLine, "the run has no run_terminal "+when+"; the copy ends it as interrupted")
	x.put(x.index, orderEnd, endEvent(x.answers))
	x.run = false
}

// end is the end of the log.
func (x *examiner) end() {
	x.endRun("")
	for _, c := range x.open {
		if c.state != callOpen {
			continue
		}
		x.find(CallWithoutResult, c.turn, c.id, c.line, "the call has no result; the copy says so in its place")
		if c.raw != nil {
			x.put(c.at, orderRequest, requestEvent(c.turn, c.raw, CallWithoutResult))
		}
		x.put(c.at, orderResult, resultEvent(c.turn, c.id))
	}
}

func (x *examiner) find(code Code, turn json.Number, id string, line int, message string) {
	x.f.List = append(x.f.List, Finding{code, turn, id, line, message})
}

func (x *examiner) put(before, order int, event []byte) {
	x.f.inserts = append(x.f.inserts, insert{before, order, event})
}

// found sorts what was found by line, and what a copy needs by place.
func (x *examiner) found() *Findings {
	slices.SortStableFunc(x.f.List, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	slices.SortStableFunc(x.f.inserts, func(a, b insert) int {
		return cmp.Or(cmp.Compare(a.before, b.before), cmp.Compare(a.order, b.order))
	})
	x.f.entries = x.index
	return &x.f
}

// noResult is what a result that nobody wrote says.
const noResult = "no result was written: the log ends, or goes on, without it"

func requestOf(id string) []byte {
	b := jsonscan.AppendText([]byte(`{"id":`), id)
	return append(b, `,"name":"","arguments":{}}`...)
}

func requestEvent(turn json.Number, call []byte, why Code) []byte {
	return fmt.Appendf(nil, `{"kind":"tool_requested","turn":%s,"calls":[%s],"repaired":%q}`, turn, call, why)
}

func resultEvent(turn json.Number, id string) []byte {
	return fmt.Appendf(nil, `{"kind":"tool_completed","turn":%s,"results":[{"call_id":%s,"output":%q,"is_error":true}],"repaired":%q}`,
		turn, jsonscan.AppendText(nil, id), noResult, CallWithoutResult)
}

func endEvent(answers int) []byte {
	return fmt.Appendf(nil, `{"kind":"run_terminal","reason":%q,"turns_used":%d,"repaired":%q}`, ReasonInterrupted, answers, RunWithoutEnd)
}

// objects gives the objects of a list, each with the string that its key holds ("" for none) and as it stands.
func (v *eventView) objects(at field, key string, each func(id string, raw []byte)) {
	if !v.begin(at, "a list of objects", func(c byte) bool { return c == '[' }) {
		return
	}
	list := v.s // the scanner of an element is another
	for list.Begin('['); list.More(']'); {
		if list.Peek() != '{' {
			v.wrong(at, "want a list of objects, got %s", shortened(v.raw[at]))
			return
		}
		raw := list.Raw()
		id, ok := v.member(raw, key)
		if !ok {
			v.wrong(at, "want objects that have one string %q, got %s", key, shortened(raw))
			return
		}
		each(id, raw)
	}
}

// member returns the string that key holds in an object, "" where it is absent or null. It is not ok where the key stands twice
// or holds something else.
func (v *eventView) member(object []byte, key string) (text string, ok bool) {
	s := &v.s
	s.Reset(object)
	seen := false
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != key {
			s.Skip()
			continue
		}
		if seen {
			return "", false
		}
		seen = true
		switch s.Peek() {
		case '"':
			text = string(s.TextBytes())
		case 'n':
			s.Skip()
		default:
			return "", false
		}
	}
	return text, s.Err() == nil
}

// calls gives the calls of an answer: those of its message, or, in the form of newer producers, its own.
func (v *eventView) calls(each func(id string, raw []byte)) {
	v.objects(fieldToolCalls, "id", each)
	if !v.begin(fieldMessage, "an object", func(c byte) bool { return c == '{' }) {
		return
	}
	s := v.s
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "tool_calls" || s.Peek() == 'n' {
			s.Skip()
			continue
		}
		inner := eventView{kind: v.kind}
		inner.there, inner.raw[fieldToolCalls] = 1<<fieldToolCalls, s.Raw()
		if inner.objects(fieldToolCalls, "id", each); inner.fail != nil && v.fail == nil {
			v.fail = inner.fail
		}
	}
}
