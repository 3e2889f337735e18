package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
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

// sources are the files of a run by the names that positions have.
type sources map[string][]byte

// fault is an error of the interpreter as an *Error: with its place, its line, its stack, and those of a module or a branch below. stop
// is what ended the run from outside; nil for nothing.
func (s sources) fault(err, stop error) *Error {
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return plainFault(err)
	}
	e := &Error{Message: eval.Msg, Stack: frames(eval.CallStack), cause: eval.Unwrap()}
	if i := slices.IndexFunc(e.Stack, inFile); i >= 0 {
		e.Position = innermost(e.Stack)
	}
	var inner *Error
	switch {
	case errors.As(e.cause, &inner):
		return s.below(e, inner)
	case stop != nil && strings.HasPrefix(eval.Msg, "Starlark computation cancelled"):
		e.Message, e.cause = stop.Error(), stop
	case stop != nil && errors.Is(e.cause, context.Canceled): // of branches, one that did not fail by itself
		e.Message, e.cause = stop.Error(), errors.Join(stop, context.Canceled)
	}
	e.Source = s.line(e.Position)
	return e
}

func plainFault(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Message: err.Error(), cause: err}
}

// below is what happened in a module or a branch that stands on the stack of e.
func (s sources) below(e, inner *Error) *Error {
	whole := *inner
	whole.Stack = append(slices.Clip(e.Stack), inner.Stack...)
	if whole.File == "" {
		whole.Position, whole.Source, whole.Message = e.Position, s.line(e.Position), e.Message
	}
	return &whole
}

func inFile(f Frame) bool { return f.Line > 0 }

func innermost(stack []Frame) Position {
	for _, f := range slices.Backward(stack) {
		if inFile(f) {
			return f.Position
		}
	}
	return Position{}
}

// frames leaves out what no script has written.
func frames(stack starlark.CallStack) []Frame {
	var out []Frame
	for _, f := range stack {
		if !strings.HasPrefix(f.Name, hidden) && f.Pos.Filename() != "<builtin>" {
			out = append(out, Frame{Name: f.Name, Position: position(f.Pos)})
		}
	}
	return out
}

func (s sources) line(p Position) string {
	if p.Line < 1 {
		return ""
	}
	src, n := s[p.File], 1
	for ; n < p.Line && src != nil; n++ {
		i := bytes.IndexByte(src, '\n')
		if i < 0 {
			return ""
		}
		src = src[i+1:]
	}
	line, _, _ := bytes.Cut(src, []byte("\n"))
	return short(strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r"), 300)
}

// undefined is a compileError that says which of some names was meant.
func (s sources) undefined(err error, names []string) error {
	e := s.compileError(err)
	if name, ok := strings.CutPrefix(e.Message, "undefined: "); ok && !strings.Contains(name, " ") && pythonNames[name] == "" {
		e.Message += didYouMean(name, append(names, starlark.Universe.Keys()...), "")
	}
	return e
}

// compileError is an error of the parser or the resolver, which finds several at once.
func (s sources) compileError(err error) *Error {
	var e *Error
	var scan syntax.Error
	var list resolve.ErrorList
	switch {
	case errors.As(err, &e):
	case errors.As(err, &scan):
		e = &Error{Position: position(scan.Pos), Message: scan.Msg, cause: err}
		e.Hint = notStarlark(s.line(e.Position))
	case errors.As(err, &list) && len(list) > 0:
		e = &Error{Position: position(list[0].Pos), Message: list[0].Msg, cause: err}
		for _, more := range list[1:min(len(list), 5)] {
			e.Hint += fmt.Sprintf("also line %d: %s\n  ", more.Pos.Line, more.Msg)
		}
		e.Hint = strings.TrimSpace(notHere(&e.Message) + "\n  " + e.Hint)
	default:
		e = &Error{Message: err.Error(), cause: err}
	}
	e.Source = s.line(e.Position)
	return e
}
