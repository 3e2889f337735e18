package sessionlog

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Fold makes a Snapshot of events, one after the other. It holds what the snapshot lists and nothing else of the log. It is
// not safe for concurrent use.
type Fold struct {
	snap   Snapshot
	agents map[string]int    // where an agent stands in snap.ProcessByAgent
	common map[string]string // short texts that were met before, so that a list of a million signals holds one "queue"
	view   eventView
	odd    func(*EventError) // told of a field that holds something else; nil where that is refused
}

// NewFold returns a Fold that has seen no event.
func NewFold() *Fold { return NewFoldFrom(&Snapshot{}) }

// NewFoldFrom returns a Fold that goes on from the snapshot of a prefix, which stays as it is.
func NewFoldFrom(prefix *Snapshot) *Fold {
	f := &Fold{snap: *prefix.clone(), agents: map[string]int{}, common: map[string]string{}}
	for i, p := range f.snap.ProcessByAgent {
		f.agents[p.AgentID] = i
	}
	return f
}

// Snapshot returns what the events so far come to. The Fold may go on; the snapshot does not change with it.
func (f *Fold) Snapshot() *Snapshot { return f.snap.clone() }

// AddRaw folds one event, as it stands in a log: its JSON object without the envelope. Kinds that the snapshot says nothing
// about change nothing. The error is an *EventError: no object, no kind, no UTF-8, or a field that is read here, stands
// twice or is of another type than the spec gives it (null is as good as absent). Then the Fold is as it was.
func (f *Fold) AddRaw(event []byte) error {
	if err := f.view.read(event); err != nil {
		return err
	}
	return f.add()
}

// add folds the event in the view.
func (f *Fold) add() error {
	step := foldSteps[Kind(f.view.kind)] // no allocation: the compiler knows a lookup by a converted key
	if step == nil {
		return nil
	}
	step(f, &f.view)
	if f.odd != nil && f.view.fail != nil {
		f.odd(f.view.fail)
		return nil
	}
	return f.view.err()
}

// takes reports whether an event is folded: where odd is told, a field that holds something else is left out, as if it were absent.
func (f *Fold) takes(v *eventView) bool { return v.fail == nil || f.odd != nil }

// foldSteps are what the kinds that a snapshot knows of do to it. A step reads all that it wants before it changes anything,
// by put, so that an event that is refused leaves no trace.
var foldSteps = map[Kind]func(*Fold, *eventView){
	"suspended":                (*Fold).suspended,
	"resumed":                  (*Fold).resumed,
	"agent_process_changed":    (*Fold).process,
	"budget_exceeded":          (*Fold).exceeded,
	"budget_usage_reported":    (*Fold).usage,
	"operation_cancelled":      (*Fold).cancelled,
	"signal_disposed":          (*Fold).signal,
	"signal_delivery_disposed": (*Fold).signal,
	"page_out":                 counts(func(s *Snapshot) *uint64 { return &s.PageOutCount }),
	"page_in":                  counts(func(s *Snapshot) *uint64 { return &s.PageInCount }),
	"tool_gated":               counts(func(s *Snapshot) *uint64 { return &s.ToolGatedCount }),
	"large_result_spooled":     counts(func(s *Snapshot) *uint64 { return &s.SpoolCount }),
	"memory_written":           counts(func(s *Snapshot) *uint64 { return &s.MemoryWrittenCount }),
	"memory_queried":           counts(func(s *Snapshot) *uint64 { return &s.MemoryQueriedCount }),
	"memory_validation_failed": counts(func(s *Snapshot) *uint64 { return &s.MemoryValidationFailCount }),
	"memory_retrieval_result":  counts(func(s *Snapshot) *uint64 { return &s.MemoryRetrievalResultCount }),
}

func counts(of func(*Snapshot) *uint64) func(*Fold, *eventView) {
	return func(f *Fold, _ *eventView) { *of(&f.snap)++ }
}

func (f *Fold) suspended(v *eventView) {
	e := &Suspension{f.number(v, fieldTurn), f.text(v, fieldReason), f.texts(v, fieldPendingCalls)}
	if f.takes(v) {
		f.snap.LastSuspend = e
	}
}

func (f *Fold) resumed(v *eventView) {
	if turn := f.number(v, fieldTurn); f.takes(v) {
		f.snap.LastResumedTurn = &turn
	}
}

func (f *Fold) process(v *eventView) {
	e := Process{f.number(v, fieldTurn), f.text(v, fieldAgentID), f.text(v, fieldParentSessionID), f.text(v, fieldState)}
	if !f.takes(v) {
		return
	}
	if at, known := f.agents[e.AgentID]; known {
		f.snap.ProcessByAgent[at] = e
		return
	}
	f.agents[e.AgentID] = len(f.snap.ProcessByAgent)
	f.snap.ProcessByAgent = append(f.snap.ProcessByAgent, e)
}

func (f *Fold) exceeded(v *eventView) {
	e := Exceeded{f.number(v, fieldTurn), f.text(v, fieldBudget), f.maybe(v, fieldOperationID), f.maybe(v, fieldReservationID)}
	if f.takes(v) {
		f.snap.BudgetExceeded = append(f.snap.BudgetExceeded, e)
	}
}

func (f *Fold) signal(v *eventView) {
	e := Signal{Turn: f.number(v, fieldTurn), SignalID: f.text(v, fieldSignalID), Disposition: f.text(v, fieldDisposition),
		QueueDepth: f.number(v, fieldQueueDepth), OperationID: f.maybe(v, fieldOperationID), DeliveryID: f.maybe(v, fieldDeliveryID)}
	if n := f.number(v, fieldAttempt); v.has(fieldAttempt) && v.last != fieldAttempt {
		e.Attempt = &n
	}
	if f.takes(v) {
		f.snap.Signals = append(f.snap.Signals, e)
	}
}

func (f *Fold) usage(v *eventView) {
	e := Usage{f.number(v, fieldTurn), f.text(v, fieldOperationID), f.text(v, fieldReservationID),
		f.number(v, fieldTokens), f.number(v, fieldSubagents), f.number(v, fieldRounds)}
	if f.takes(v) {
		f.snap.BudgetUsageReported = append(f.snap.BudgetUsageReported, e)
	}
}

func (f *Fold) cancelled(v *eventView) {
	e := Cancellation{f.number(v, fieldTurn), f.text(v, fieldOperationID), f.text(v, fieldReason), f.texts(v, fieldPendingCallIDs)}
	if f.takes(v) {
		f.snap.Cancellations = append(f.snap.Cancellations, e)
	}
}

func (f *Fold) number(v *eventView, at field) json.Number { return json.Number(f.intern(v.number(at))) }
func (f *Fold) text(v *eventView, at field) string        { return f.intern(v.text(at)) }

func (f *Fold) maybe(v *eventView, at field) *string {
	if s := f.text(v, at); v.has(at) && v.last != at {
		return &s
	}
	return nil
}

func (f *Fold) texts(v *eventView, at field) []string {
	out := []string{}
	v.texts(at, func(b []byte) { out = append(out, f.intern(b)) })
	if v.last == at {
		return []string{}
	}
	return out
}

const (
	maxCommon     = 4096 // texts
	maxCommonText = 64   // bytes of one
)

// intern returns b as a string of its own, the same one for texts that come often.
func (f *Fold) intern(b []byte) string {
	if s, ok := f.common[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) <= maxCommonText && len(f.common) < maxCommon {
		f.common[s] = s
	}
	return s
}

// An EventError is an event that cannot be read for what it is.
type EventError struct {
	EventKind Kind   // "" where that cannot be read
	Field     string // the key that is wrong; "" for the event as a whole
	Err       error  // what was expected and what came
}

func (e *EventError) Error() string {
	switch {
	case e.EventKind == "":
		return fmt.Sprintf("event: %v", e.Err)
	case e.Field == "":
		return fmt.Sprintf("event %q: %v", string(e.EventKind), e.Err)
	}
	return fmt.Sprintf("event %q: field %s: %v", string(e.EventKind), e.Field, e.Err)
}

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }

var (
	errNoKind   = errors.New(`want an object with a string "kind"`)
	errTwoKinds = errors.New(`the key "kind" stands twice`)
)

// An eventView is the fields of one event that the fold and the repair read, as they stand in the line.
type eventView struct {
	kind  []byte            // decoded
	raw   [numFields][]byte // only those in there count
	there uint32            // one bit a field
	twice uint32            // likewise
	fail  *EventError       // the first field that is wrong
	last  field             // the last one
	s     jsonscan.Scanner
}

// read takes an event apart.
func (v *eventView) read(event []byte) error {
	if err := jsonscan.ValidUTF8(event); err != nil {
		return &EventError{Err: err}
	}
	return v.readValid(event)
}

// readValid is read for what is known to be UTF-8.
func (v *eventView) readValid(event []byte) error {
	v.there, v.twice, v.fail, v.last, v.kind = 0, 0, nil, fieldNone, v.kind[:0]
	s := &v.s
	s.Reset(event)
	for s.Begin('{'); s.More('}'); {
		at := fieldsByName[string(s.Key())]
		bit := uint32(1) << at
		v.twice |= v.there & bit
		v.there |= bit
		switch at {
		case fieldNone:
			s.Skip()
		case fieldKind:
			v.kind = append(v.kind[:0], s.TextBytes()...)
		default:
			v.raw[at] = s.Raw()
		}
	}
	if err := s.End(); err != nil {
		return &EventError{Err: err}
	}
	switch kind := uint32(1) << fieldKind; {
	case v.there&kind == 0:
		return &EventError{Err: errNoKind}
	case v.twice&kind != 0:
		return &EventError{Err: errTwoKinds}
	}
	return nil
}

func (v *eventView) err() error {
	if v.fail == nil {
		return nil
	}
	return v.fail
}

// wrong keeps the first field that is not as it should be.
func (v *eventView) wrong(at field, format string, args ...any) {
	v.last = at
	if v.fail == nil {
		v.fail = &EventError{EventKind: Kind(v.kind), Field: fieldNames[at], Err: fmt.Errorf(format, args...)}
	}
}

// has reports whether the field is there and not null.
func (v *eventView) has(at field) bool { return v.there>>at&1 != 0 && v.raw[at][0] != 'n' }

// begin makes the scanner stand before the field's value, where there is one.
func (v *eventView) begin(at field, want string, first func(byte) bool) bool {
	if v.twice>>at&1 != 0 {
		v.wrong(at, "the key stands twice")
		return false
	}
	if !v.has(at) {
		return false
	}
	if !first(v.raw[at][0]) {
		v.wrong(at, "want %s, got %s", want, shortened(v.raw[at]))
		return false
	}
	v.s.Reset(v.raw[at])
	return true
}

// text returns a string's bytes, valid until the next is read; nil for none.
func (v *eventView) text(at field) []byte {
	if !v.begin(at, "a string", func(c byte) bool { return c == '"' }) {
		return nil
	}
	return v.s.TextBytes()
}

var zeroNumber = []byte("0")

// number returns a number as it stands, 0 for none.
func (v *eventView) number(at field) []byte {
	if !v.begin(at, "a number", func(c byte) bool { return c == '-' || '0' <= c && c <= '9' }) {
		return zeroNumber
	}
	return v.raw[at]
}

// texts gives the strings of a list.
func (v *eventView) texts(at field, each func([]byte)) {
	if !v.begin(at, "a list of strings", func(c byte) bool { return c == '[' }) {
		return
	}
	for v.s.Begin('['); v.s.More(']'); {
		if v.s.Peek() != '"' {
			v.wrong(at, "want a list of strings, got %s", shortened(v.raw[at]))
			return
		}
		each(v.s.TextBytes())
	}
}

// shortened is a value for an error's text.
func shortened(raw []byte) string {
	const most = 40
	if len(raw) <= most {
		return string(raw)
	}
	return fmt.Sprintf("%s… (%d bytes)", raw[:most], len(raw))
}

// A field is a key of an event that is read without decoding the whole.
type field uint8

const (
	fieldNone field = iota
	fieldKind
	fieldTurn
	fieldReason
	fieldPendingCalls
	fieldAgentID
	fieldParentSessionID
	fieldState
	fieldBudget
	fieldOperationID
	fieldReservationID
	fieldTokens
	fieldSubagents
	fieldRounds
	fieldSignalID
	fieldDisposition
	fieldQueueDepth
	fieldDeliveryID
	fieldAttempt
	fieldPendingCallIDs
	fieldCallID
	fieldCalls
	fieldResults
	fieldMessage
	fieldToolCalls
	fieldDenied
	numFields
)

var fieldNames = [numFields]string{
	fieldKind: "kind", fieldTurn: "turn", fieldReason: "reason", fieldPendingCalls: "pending_calls", fieldAgentID: "agent_id",
	fieldParentSessionID: "parent_session_id", fieldState: "state", fieldBudget: "budget", fieldOperationID: "operation_id",
	fieldReservationID: "reservation_id", fieldTokens: "tokens", fieldSubagents: "subagents", fieldRounds: "rounds",
	fieldSignalID: "signal_id", fieldDisposition: "disposition", fieldQueueDepth: "queue_depth", fieldDeliveryID: "delivery_id",
	fieldAttempt: "attempt", fieldPendingCallIDs: "pending_call_ids",
	fieldCallID: "call_id", fieldCalls: "calls", fieldResults: "results", fieldMessage: "message", fieldToolCalls: "tool_calls", fieldDenied: "denied",
}

var fieldsByName = func() map[string]field {
	all := make(map[string]field, numFields)
	for at, name := range fieldNames {
		all[name] = field(at)
	}
	delete(all, fieldNames[fieldNone])
	return all
}()
