package script

import (
	"fmt"
	"strings"
)

// Position is a place in a script. Line and Col count from 1, Col in characters; both are 0 where there is none.
type Position struct {
	File string
	Line int
	Col  int
}

// String is FILE:LINE:COL.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	if p.Col == 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Frame is one call on the stack of an error.
type Frame struct {
	Name string // of the function, "<toplevel>" for a file's own statements, "parallel, branch 3" for a branch
	Position
}

// Error is what ended a script, and where. The cause is behind Unwrap: an *AssertionError, a *LimitError, or the error of the
// piece of the bench that refused.
type Error struct {
	Position
	Message string
	Source  string  // the line of the script, "" where it is not known
	Stack   []Frame // outermost first; empty for what does not compile
	Hint    string  // the next step, "" where there is none
	// LeftBehind: the script is in a step that neither ends nor looks at its limits, and still runs. Whoever ran it ends the process.
	LeftBehind bool
	cause      error
}

// Error is the place and the message in one line.
func (e *Error) Error() string {
	if e.File == "" {
		return e.Message
	}
	return e.String() + ": " + e.Message
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.cause }

// Detail is the error for people: the message, the line with a mark under the place, the stack, the next step.
func (e *Error) Detail() string {
	var b strings.Builder
	b.WriteString(e.Error())
	b.WriteByte('\n')
	if e.Source != "" {
		writeSource(&b, e.Source, e.Line, e.Col)
	}
	if len(e.Stack) > 1 {
		writeStack(&b, e.Stack)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "  %s\n", e.Hint)
	}
	return b.String()
}

// shownFrames is how many calls of each end of a deep stack are printed.
const shownFrames = 10

func writeStack(b *strings.Builder, stack []Frame) {
	for i := len(stack) - 1; i >= 0; i-- {
		if left := i - shownFrames + 1; len(stack) > 2*shownFrames && i == len(stack)-1-shownFrames {
			fmt.Fprintf(b, "  … %d more\n", left)
			i = shownFrames
			continue
		}
		if stack[i].Line == 0 {
			fmt.Fprintf(b, "  in %s\n", stack[i].Name)
		} else {
			fmt.Fprintf(b, "  at %s in %s\n", stack[i].Position, stack[i].Name)
		}
	}
}

func writeSource(b *strings.Builder, line string, number, col int) {
	margin := fmt.Sprintf("%5d | ", number)
	fmt.Fprintf(b, "%s%s\n", margin, line)
	pad := []rune(line)
	if col < 1 || col > len(pad) {
		return
	}
	pad = pad[:col-1]
	for i, r := range pad {
		if r != '\t' {
			pad[i] = ' '
		}
	}
	fmt.Fprintf(b, "%s| %s^\n", strings.Repeat(" ", len(margin)-2), string(pad))
}

// AssertionError says that an assertion of the script did not hold. The command exits with 2.
type AssertionError struct {
	Message   string // of the script, "" without one
	Got, Want string // as Starlark writes the values; Want is "" for assert_true
	Diff      string // for long values: what differs, a line a place; else ""
	Verb      string // between the two: "is not", "is not in"
}

// Error is the message and both values.
func (e *AssertionError) Error() string {
	var b strings.Builder
	b.WriteString("assertion failed")
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Diff != "" {
		return b.String() + "\n" + strings.TrimRight(e.Diff, "\n")
	}
	b.WriteString(": " + e.Got + " " + e.Verb)
	if e.Want != "" {
		b.WriteString(" " + e.Want)
	}
	return b.String()
}

// LimitError says that the script was ended by one of its limits.
type LimitError struct {
	Limit string // "steps", "memory", "time", "depth"
	Value string // what the limit is, with its unit
	Flag  string // the flag that raises it, "" where none does
	What  string // what was about to go beyond it, "" where it is the whole run
}

// Error names the limit, its value and its flag.
func (e *LimitError) Error() string {
	var b strings.Builder
	switch e.Limit {
	case "depth":
		b.WriteString("too deep: " + e.What + ", at most " + e.Value)
	default:
		b.WriteString("the script took more than its limit of " + e.Limit + ", " + e.Value)
		if e.What != "" {
			b.WriteString(": " + e.What)
		}
	}
	if e.Flag != "" {
		b.WriteString("; " + e.Flag + " sets it")
	}
	return b.String()
}
