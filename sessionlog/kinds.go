package sessionlog

import (
	"maps"
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

// kinds makes an empty event of every kind of the format.
var kinds = map[Kind]func() Event{
	KindRunStarted:             func() Event { return new(RunStarted) },
	KindLLMCompleted:           func() Event { return new(LLMCompleted) },
	KindToolRequested:          func() Event { return new(ToolRequested) },
	KindToolCompleted:          func() Event { return new(ToolCompleted) },
	KindToolArgumentRepaired:   func() Event { return new(ToolArgumentRepaired) },
	KindPermissionRequested:    func() Event { return new(PermissionRequested) },
	KindPermissionResolved:     func() Event { return new(PermissionResolved) },
	KindToolDenied:             func() Event { return new(ToolDenied) },
	KindToolGated:              func() Event { return new(ToolGated) },
	KindLargeResultSpooled:     func() Event { return new(LargeResultSpooled) },
	KindCapabilityChanged:      func() Event { return new(CapabilityChanged) },
	KindCompressed:             func() Event { return new(Compressed) },
	KindPageOut:                func() Event { return new(PageOut) },
	KindPageIn:                 func() Event { return new(PageIn) },
	KindContextRenewed:         func() Event { return new(ContextRenewed) },
	KindSuspended:              func() Event { return new(Suspended) },
	KindResumed:                func() Event { return new(Resumed) },
	KindSignalDisposed:         func() Event { return new(SignalDisposed) },
	KindSignalDeliveryDisposed: func() Event { return new(SignalDeliveryDisposed) },
	KindBudgetExceeded:         func() Event { return new(BudgetExceeded) },
	KindBudgetUsageReported:    func() Event { return new(BudgetUsageReported) },
	KindOperationCancelled:     func() Event { return new(OperationCancelled) },
	KindCheckpointTaken:        func() Event { return new(CheckpointTaken) },
	KindRollbacked:             func() Event { return new(Rollbacked) },
	KindAgentProcessChanged:    func() Event { return new(AgentProcessChanged) },
	KindMilestoneAdvanced:      func() Event { return new(MilestoneAdvanced) },
	KindMilestoneBlocked:       func() Event { return new(MilestoneBlocked) },
	KindMilestoneEvidence:      func() Event { return new(MilestoneEvidence) },
	KindEntropySample:          func() Event { return new(EntropySample) },
	KindEntropyAlert:           func() Event { return new(EntropyAlert) },
	KindMemoryWritten:          func() Event { return new(MemoryWritten) },
	KindMemoryQueried:          func() Event { return new(MemoryQueried) },
	KindMemoryValidationFailed: func() Event { return new(MemoryValidationFailed) },
	KindMemoryRetrievalResult:  func() Event { return new(MemoryRetrievalResult) },
	KindRunTerminal:            func() Event { return new(RunTerminal) },
}

// Known reports whether the kind has a type of its own here.
func (k Kind) Known() bool { return kinds[k] != nil }

// Kinds lists the kinds of the format, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }
