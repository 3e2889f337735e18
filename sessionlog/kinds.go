package sessionlog

import (
	"maps"
	"reflect"
	"slices"
)

// A Kind is the value of an event's key "kind".
type Kind string

// The kinds of the format. Others are kept as they stood.
const (
	KindRunStarted             Kind = "run_started"
	KindLLMCompleted           Kind = "llm_completed"
	KindToolRequested          Kind = "tool_requested"
	KindToolCompleted          Kind = "tool_completed"
	KindToolArgumentRepaired   Kind = "tool_argument_repaired"
	KindPermissionRequested    Kind = "permission_requested"
	KindPermissionResolved     Kind = "permission_resolved"
	KindToolDenied             Kind = "tool_denied"
	KindToolGated              Kind = "tool_gated"
	KindLargeResultSpooled     Kind = "large_result_spooled"
	KindCapabilityChanged      Kind = "capability_changed"
	KindCompressed             Kind = "compressed"
	KindPageOut                Kind = "page_out"
	KindPageIn                 Kind = "page_in"
	KindContextRenewed         Kind = "context_renewed"
	KindSuspended              Kind = "suspended"
	KindResumed                Kind = "resumed"
	KindSignalDisposed         Kind = "signal_disposed"
	KindSignalDeliveryDisposed Kind = "signal_delivery_disposed"
	KindBudgetExceeded         Kind = "budget_exceeded"
	KindBudgetUsageReported    Kind = "budget_usage_reported"
	KindOperationCancelled     Kind = "operation_cancelled"
	KindCheckpointTaken        Kind = "checkpoint_taken"
	KindRollbacked             Kind = "rollbacked"
	KindAgentProcessChanged    Kind = "agent_process_changed"
	KindMilestoneAdvanced      Kind = "milestone_advanced"
	KindMilestoneBlocked       Kind = "milestone_blocked"
	KindMilestoneEvidence      Kind = "milestone_evidence"
	KindEntropySample          Kind = "entropy_sample"
	KindEntropyAlert           Kind = "entropy_alert"
	KindMemoryWritten          Kind = "memory_written"
	KindMemoryQueried          Kind = "memory_queried"
	KindMemoryValidationFailed Kind = "memory_validation_failed"
	KindMemoryRetrievalResult  Kind = "memory_retrieval_result"
	KindRunTerminal            Kind = "run_terminal"
)

// kinds has an empty event of every kind of the format.
var kinds = map[Kind]Event{
	KindRunStarted:             new(RunStarted),
	KindLLMCompleted:           new(LLMCompleted),
	KindToolRequested:          new(ToolRequested),
	KindToolCompleted:          new(ToolCompleted),
	KindToolArgumentRepaired:   new(ToolArgumentRepaired),
	KindPermissionRequested:    new(PermissionRequested),
	KindPermissionResolved:     new(PermissionResolved),
	KindToolDenied:             new(ToolDenied),
	KindToolGated:              new(ToolGated),
	KindLargeResultSpooled:     new(LargeResultSpooled),
	KindCapabilityChanged:      new(CapabilityChanged),
	KindCompressed:             new(Compressed),
	KindPageOut:                new(PageOut),
	KindPageIn:                 new(PageIn),
	KindContextRenewed:         new(ContextRenewed),
	KindSuspended:              new(Suspended),
	KindResumed:                new(Resumed),
	KindSignalDisposed:         new(SignalDisposed),
	KindSignalDeliveryDisposed: new(SignalDeliveryDisposed),
	KindBudgetExceeded:         new(BudgetExceeded),
	KindBudgetUsageReported:    new(BudgetUsageReported),
	KindOperationCancelled:     new(OperationCancelled),
	KindCheckpointTaken:        new(CheckpointTaken),
	KindRollbacked:             new(Rollbacked),
	KindAgentProcessChanged:    new(AgentProcessChanged),
	KindMilestoneAdvanced:      new(MilestoneAdvanced),
	KindMilestoneBlocked:       new(MilestoneBlocked),
	KindMilestoneEvidence:      new(MilestoneEvidence),
	KindEntropySample:          new(EntropySample),
	KindEntropyAlert:           new(EntropyAlert),
	KindMemoryWritten:          new(MemoryWritten),
	KindMemoryQueried:          new(MemoryQueried),
	KindMemoryValidationFailed: new(MemoryValidationFailed),
	KindMemoryRetrievalResult:  new(MemoryRetrievalResult),
	KindRunTerminal:            new(RunTerminal),
}

// types are the same the other way round.
var types = func() map[reflect.Type]Kind {
	all := make(map[reflect.Type]Kind, len(kinds))
	for kind, e := range kinds {
		all[reflect.TypeOf(e)] = kind
	}
	return all
}()

// newEvent makes an empty event of a kind.
func newEvent(kind Kind) Event {
	if e := kinds[kind]; e != nil {
		return reflect.New(reflect.TypeOf(e).Elem()).Interface().(Event)
	}
	return &Unknown{EventKind: kind}
}

// KindOf returns the kind of an event.
func KindOf(e Event) Kind {
	if u, ok := e.(*Unknown); ok {
		return u.EventKind
	}
	return types[reflect.TypeOf(e)]
}

// Known reports whether the kind has a type of its own here.
func (k Kind) Known() bool { return kinds[k] != nil }

// Kinds lists the kinds of the format, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }
