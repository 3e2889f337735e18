package sessionlog

import (
	"fmt"
	"strings"
)

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
