package sessionlog

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
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

// Kinds lists the kinds of the format, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

// A Category is the part of an agent's kernel that an event belongs to: finer than a Primitive.
type Category string

// The categories.
const (
	CategorySyscall Category = "syscall" // gates and capabilities
	CategorySched   Category = "sched"   // scheduling, budgets, suspending; everything that is nothing else
	CategoryMM      Category = "mm"      // memory: compression, paging, long-term entries
	CategoryProc    Category = "proc"    // sub-agents
	CategoryIPC     Category = "ipc"     // signals
)

// Categories lists the categories.
func Categories() []Category {
	return []Category{CategorySyscall, CategorySched, CategoryMM, CategoryProc, CategoryIPC}
}

// A Primitive is one of the three planes that a kernel decides on.
type Primitive string

// The primitives.
const (
	PrimitiveSyscall Primitive = "syscall"
	PrimitiveSched   Primitive = "sched"
	PrimitiveMM      Primitive = "mm"
)

// Primitives lists the primitives.
func Primitives() []Primitive { return []Primitive{PrimitiveSyscall, PrimitiveSched, PrimitiveMM} }

// Primitive is the plane that the category belongs to: proc and ipc are facets of sched.
func (c Category) Primitive() Primitive {
	switch c {
	case CategorySyscall:
		return PrimitiveSyscall
	case CategoryMM:
		return PrimitiveMM
	}
	return PrimitiveSched
}

// Category is what the taxonomy says of the kind, whether or not a line carries it.
func (k Kind) Category() Category {
	switch k {
	case KindToolGated, KindCapabilityChanged:
		return CategorySyscall
	case KindCompressed, KindPageOut, KindPageIn, "page_in_requested", KindLargeResultSpooled, KindContextRenewed, "renewed",
		KindMemoryWritten, KindMemoryQueried, KindMemoryValidationFailed:
		return CategoryMM
	case KindAgentProcessChanged, "agent_spawned", "agent_preempted", "workflow_batch_spawned", "workflow_completed":
		return CategoryProc
	case KindSignalDisposed, KindSignalDeliveryDisposed:
		return CategoryIPC
	}
	return CategorySched
}

// Primitive is the plane that the kind's category belongs to.
func (k Kind) Primitive() Primitive { return k.Category().Primitive() }

// Kernel reports whether an event of the kind is a decision of the kernel.
func (k Kind) Kernel() bool {
	switch k {
	case KindCompressed, KindPageOut, KindPageIn, KindCapabilityChanged, KindContextRenewed, KindSuspended, KindResumed,
		KindToolGated, KindOperationCancelled, KindCheckpointTaken, KindRollbacked, KindAgentProcessChanged,
		KindMemoryWritten, KindMemoryQueried, KindMemoryValidationFailed:
		return true
	}
	for _, family := range []string{"signal_", "budget_", "entropy_", "milestone_"} {
		if strings.HasPrefix(string(k), family) {
			return true
		}
	}
	return false
}

// MustCarryCategory reports whether the category check asks an event of the kind for its category: every kernel event but
// those of memory, whose producers never wrote one.
func (k Kind) MustCarryCategory() bool {
	return k.Kernel() && !strings.HasPrefix(string(k), "memory_")
}

// ParseCategory returns the category called s. The error lists them.
func ParseCategory(s string) (Category, error) { return parseOne("category", s, Categories()) }

// ParsePrimitive returns the primitive called s. The error lists them.
func ParsePrimitive(s string) (Primitive, error) { return parseOne("primitive", s, Primitives()) }

func parseOne[T ~string](what, s string, all []T) (T, error) {
	var names []string
	for _, v := range all {
		if string(v) == s {
			return v, nil
		}
		names = append(names, string(v))
	}
	return "", fmt.Errorf("no %s is called %.40q; there are %s", what, s, strings.Join(names, ", "))
}
