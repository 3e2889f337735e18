package sessionlog

import (
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// FoldOptions say how much of a log is folded. Nil and zero work.
type FoldOptions struct {
	// At, where it is not nil, stops at the end of that turn: before the first event whose turn is a greater integer. What
	// stands behind it is not folded. An event without a turn, or with one that is no integer, belongs to the turn of the
	// event before it, and what stands before the first turn to turn 0.
	At *int
	// Odd, where it is not nil, is told of each event with a field that the snapshot has and that holds something else than the format
	// says, or stands twice: the first such field of it. Such fields are left out, as if they were absent. Without Odd they end the fold.
	Odd func(*LoadError)
	// Seen, where it is not nil, is told what was folded.
	Seen *FoldSeen
}

// FoldSeen is what was folded of a log.
type FoldSeen struct {
	Events   int  // those that the snapshot says nothing about too
	LastTurn int  // the highest turn of those
	More     bool // At stopped before the end of the log
}

// SnapshotOf folds a log whose entries were not read yet, on several processors. The log is at its end then. The error is that of
// the log, a *LoadError around an *EventError for an event that cannot be read.
func SnapshotOf(log *Reader, o *FoldOptions) (*Snapshot, error) {
	f := &logFold{Fold: NewFold(), log: log, seen: &FoldSeen{}, size: blockOfEntries}
	if o != nil {
		f.at = o.At
		if o.Odd != nil {
			f.odd = func(e *EventError) { o.Odd(log.failure(e)) }
		}
		if o.Seen != nil {
			f.seen = o.Seen
		}
	}
	if err := f.run(); err != nil {
		return nil, err
	}
	return &f.snap, nil
}

// A logFold folds the entries of one log, in blocks. Whoever asked for the fold reads the blocks and folds what came of them, in order;
// in between each block is parsed by a goroutine of its own, no more at once than there are processors. All of them have ended when
// the fold returns.
type logFold struct {
	*Fold
	log  *Reader
	at   *int
	seen *FoldSeen
	size int // of a block, in bytes
}

const (
	blockOfEntries = 256 << 10 // bytes, more where an entry is longer
	blockAlone     = 8 << 20   // from so many bytes on nothing else is held beside a block
)

// A block is entries of a log.
type block struct {
	data    []byte
	entries []blockEntry
	end     error // what the reader found behind them
	line    int   // where that is
	at      int64
	done    chan struct{} // closed once the entries are parsed
}

// A blockEntry is what the fold needs to know of an entry.
type blockEntry struct {
	line     int
	offset   int64
	from, to int   // of its block's data
	err      error // of parsing it; no entry behind it is parsed

	form    Form
	kind    Kind
	event   []byte // nil where the snapshot says nothing about it
	seq     uint64
	hasSeq  bool
	turn    int
	hasTurn bool
}

func (f *logFold) run() error {
	if f.log.in == nil {
		if err := f.log.begin(); err != nil {
			return err
		}
	}
	var working sync.WaitGroup
	defer working.Wait()
	var queue, free []*block
	for over := false; ; {
		for len(queue) <= runtime.GOMAXPROCS(0) && !over {
			b := new(block)
			if n := len(free); n > 0 {
				b.data, b.entries = free[n-1].data[:0], free[n-1].entries[:0]
				free = free[:n-1]
			} else {
				b.data = make([]byte, 0, f.size+f.size/8)
			}
			over = b.fill(f.log.in, f.size)
			queue = append(queue, b)
			if working.Go(b.parse); len(b.data) > blockAlone {
				break
			}
		}
		b := queue[0]
		queue = queue[1:]
		<-b.done
		if done, err := f.fold(b); done || err != nil {
			return err
		}
		if cap(b.data) <= 4*f.size {
			free = append(free, b)
		}
	}
}

// fill takes entries until there are enough. It reports whether there are no more.
func (b *block) fill(in source, size int) (over bool) {
	b.done = make(chan struct{})
	for len(b.data) < size && b.end == nil {
		var e Entry
		b.end = in.next(&e)
		b.line, b.at = e.Line, e.Offset
		if b.end == nil {
			from := len(b.data)
			b.data = append(b.data, e.raw...)
			b.entries = append(b.entries, blockEntry{line: e.Line, offset: e.Offset, from: from, to: len(b.data)})
		}
	}
	return b.end != nil
}

// parse parses the entries.
func (b *block) parse() {
	defer close(b.done)
	var p entryParser
	for i := range b.entries {
		out := &b.entries[i]
		e := Entry{raw: b.data[out.from:out.to]}
		if out.err = p.parse(&e); out.err != nil {
			return
		}
		out.form, out.kind, out.seq, out.hasSeq, out.turn, out.hasTurn = e.Form, e.Kind, e.Seq, e.HasSeq, e.Turn, e.HasTurn
		if foldSteps[e.Kind] != nil {
			out.event = e.event
		}
	}
}

// fold folds what came of a block. It is done where nothing behind it counts.
func (f *logFold) fold(b *block) (done bool, err error) {
	for i := range b.entries {
		e := &b.entries[i]
		f.log.e.Line, f.log.e.Offset = e.line, e.offset
		if e.err != nil {
			return true, f.log.fail(e.err)
		}
		f.log.order.see(&Entry{Form: e.form, Seq: e.seq, HasSeq: e.hasSeq, Line: e.line})
		if f.seen.More = f.at != nil && e.hasTurn && e.turn > *f.at; f.seen.More {
			f.log.err = io.EOF
			return true, nil
		}
		if e.form != FormRecord {
			f.seen.Events++
			f.seen.LastTurn = max(f.seen.LastTurn, e.turn)
		}
		if e.event == nil {
			continue
		}
		err := f.view.readValid(e.event)
		if err == nil {
			err = f.add()
		}
		if err != nil {
			return true, f.log.fail(err)
		}
	}
	if b.end == nil {
		return false, nil
	}
	f.log.e.Line, f.log.e.Offset = b.line, b.at
	if err := f.log.ends(b.end); !errors.Is(err, io.EOF) {
		return true, err
	}
	return true, nil
}

// A Snapshot is what a session's events come to: the audit view of a log. Folding is pure: equal events in equal order give
// equal snapshots, and that of a prefix folded on with the rest (NewFoldFrom) is that of the whole.
//
// Its JSON has the keys in the order of the fields here, all of them always; a list without entries is [], never null. Numbers
// of the log are kept as they stood (1e3 stays 1e3, 18446744073709551617 loses no digit). A field that an event lacks is its
// zero value here, but for those marked as optional, which newer producers write and older ones do not: those stay absent.
type Snapshot struct {
	LastSuspend     *Suspension  `json:"last_suspend"`      // the newest suspended; nil for none
	LastResumedTurn *json.Number `json:"last_resumed_turn"` // the turn of the newest resumed; nil for none
	ProcessByAgent  []Process    `json:"process_by_agent"`  // one entry an agent, its newest state, in order of first appearance
	BudgetExceeded  []Exceeded   `json:"budget_exceeded"`   // one entry an event, in order, as the lists below
	Signals         []Signal     `json:"signals"`

	PageOutCount               uint64 `json:"page_out_count"`
	PageInCount                uint64 `json:"page_in_count"`
	ToolGatedCount             uint64 `json:"tool_gated_count"`
	MemoryWrittenCount         uint64 `json:"memory_written_count"`
	MemoryQueriedCount         uint64 `json:"memory_queried_count"`
	MemoryValidationFailCount  uint64 `json:"memory_validation_failed_count"`
	MemoryRetrievalResultCount uint64 `json:"memory_retrieval_result_count"`

	// What newer producers add.
	BudgetUsageReported []Usage        `json:"budget_usage_reported"`
	Cancellations       []Cancellation `json:"cancellations"`
	SpoolCount          uint64         `json:"spool_count"` // large_result_spooled
}

// A Suspension is one event suspended.
type Suspension struct {
	Turn         json.Number `json:"turn"`
	Reason       string      `json:"reason"`
	PendingCalls []string    `json:"pending_calls"`
}

// A Process is the newest state of one agent: of agent_process_changed.
type Process struct {
	Turn            json.Number `json:"turn"`
	AgentID         string      `json:"agent_id"`
	ParentSessionID string      `json:"parent_session_id"`
	State           string      `json:"state"`
}

// Exceeded is one event budget_exceeded.
type Exceeded struct {
	Turn          json.Number `json:"turn"`
	Budget        string      `json:"budget"`
	OperationID   *string     `json:"operation_id,omitempty"`   // optional
	ReservationID *string     `json:"reservation_id,omitempty"` // optional
}

// A Signal is one event signal_disposed or signal_delivery_disposed, of which the first has no optional fields.
type Signal struct {
	Turn        json.Number  `json:"turn"`
	SignalID    string       `json:"signal_id"`
	Disposition string       `json:"disposition"`
	QueueDepth  json.Number  `json:"queue_depth"`
	OperationID *string      `json:"operation_id,omitempty"` // optional
	DeliveryID  *string      `json:"delivery_id,omitempty"`  // optional
	Attempt     *json.Number `json:"attempt,omitempty"`      // optional
}

// Usage is one event budget_usage_reported.
type Usage struct {
	Turn          json.Number `json:"turn"`
	OperationID   string      `json:"operation_id"`
	ReservationID string      `json:"reservation_id"`
	Tokens        json.Number `json:"tokens"`
	Subagents     json.Number `json:"subagents"`
	Rounds        json.Number `json:"rounds"`
}

// A Cancellation is one event operation_cancelled.
type Cancellation struct {
	Turn           json.Number `json:"turn"`
	OperationID    string      `json:"operation_id"`
	Reason         string      `json:"reason"`
	PendingCallIDs []string    `json:"pending_call_ids"`
}

// MarshalJSON writes every key, in the order of the fields, and no list as null. Letters that mean something to web pages stay
// as they are.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type plain Snapshot
	s.fill()
	return jsonscan.Marshal(plain(s))
}

// fill makes lists that are nil empty, and does not change what the snapshot shares with others.
func (s *Snapshot) fill() {
	s.ProcessByAgent, s.BudgetExceeded, s.Signals = filled(s.ProcessByAgent), filled(s.BudgetExceeded), filled(s.Signals)
	s.BudgetUsageReported, s.Cancellations = filled(s.BudgetUsageReported), filled(s.Cancellations)
	if s.LastSuspend != nil && s.LastSuspend.PendingCalls == nil {
		last := *s.LastSuspend
		last.PendingCalls = []string{}
		s.LastSuspend = &last
	}
	if lacks := func(c Cancellation) bool { return c.PendingCallIDs == nil }; slices.ContainsFunc(s.Cancellations, lacks) {
		s.Cancellations = slices.Clone(s.Cancellations)
		for i := range s.Cancellations {
			s.Cancellations[i].PendingCallIDs = filled(s.Cancellations[i].PendingCallIDs)
		}
	}
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// clone returns a snapshot whose lists and last entries can be changed without s noticing. The strings of an entry, and the
// lists in one, are never changed by anyone.
func (s *Snapshot) clone() *Snapshot {
	c := *s
	c.ProcessByAgent, c.BudgetExceeded, c.Signals = slices.Clone(s.ProcessByAgent), slices.Clone(s.BudgetExceeded), slices.Clone(s.Signals)
	c.BudgetUsageReported, c.Cancellations = slices.Clone(s.BudgetUsageReported), slices.Clone(s.Cancellations)
	c.fill()
	return &c
}
