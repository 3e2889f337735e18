package sessionlog

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

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
