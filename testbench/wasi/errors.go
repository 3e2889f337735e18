package wasi

import (
	"fmt"
	"strings"
)

// An ExitError says that the program ended with a status other than 0.
type ExitError struct {
	Code   uint32
	Memory string // for people: that its memory was used up, "" where it was not
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("the module ended with status %d", e.Code)
	if e.Memory != "" {
		text += "; " + e.Memory
	}
	return text
}

// A TrapError says that the program did what WebAssembly forbids: it ran into unreachable code, divided by zero, looked outside of its
// memory, called itself too deep.
type TrapError struct {
	Reason string   // "unreachable", "out of bounds memory access", "stack overflow", …
	Stack  []string // its calls, the innermost first, with their names where the module has them
}

func (e *TrapError) Error() string {
	text := "trap: " + e.Reason
	if len(e.Stack) > 0 {
		text += ", in " + e.Stack[0]
	}
	return text
}

// A ModuleError says that something is no program for WASI preview 1.
type ModuleError struct {
	Reason string // what was expected and what came
}

func (e *ModuleError) Error() string { return e.Reason }

// An ImportError names what a module imports and nothing here gives.
type ImportError struct{ Missing []Import }

// An Import is one thing that a module wants of its host.
type Import struct {
	Module, Name string
	Kind         string // "function", "table", "memory", "global"
}

func (i Import) String() string { return fmt.Sprintf("%s %q of %q", i.Kind, i.Name, i.Module) }

func (e *ImportError) Error() string {
	var all []string
	for _, i := range e.Missing {
		all = append(all, i.String())
	}
	return fmt.Sprintf("the module imports what is not here: %s; there are the functions of %q and of %q (docs/reference/wasi.md)",
		strings.Join(all, ", "), wasiModule, hostModule)
}

// A LimitError says which of its limits a program ran into.
type LimitError struct {
	Limit string // "timeout", "memory", "output", "reads"
	What  string // what it did, with the limit, and the next step
}

func (e *LimitError) Error() string { return e.What }
