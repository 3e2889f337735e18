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

// fault is an error of the interpreter as an *Error: with its place, its line, its stack, and those of a module or a branch below.
func (r *run) fault(err error) *Error {
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return r.plainFault(err)
	}
	e := &Error{Message: eval.Msg, Stack: frames(eval.CallStack), cause: eval.Unwrap()}
	if i := slices.IndexFunc(e.Stack, inFile); i >= 0 {
		e.Position = innermost(e.Stack)
	}
	var inner *Error
	switch stop := r.budget.stopped(); {
	case errors.As(e.cause, &inner):
		return r.below(e, inner)
	case stop != nil && strings.HasPrefix(eval.Msg, "Starlark computation cancelled"):
		e.Message, e.cause = stop.Error(), stop
	case stop != nil && errors.Is(e.cause, context.Canceled): // of branches, one that did not fail by itself
		e.Message, e.cause = stop.Error(), errors.Join(stop, context.Canceled)
	}
	e.Source = r.line(e.Position)
	return e
}

func (r *run) plainFault(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Message: err.Error(), cause: err}
}

// below is what happened in a module or a branch that stands on the stack of e.
func (r *run) below(e, inner *Error) *Error {
	whole := *inner
	whole.Stack = append(slices.Clip(e.Stack), inner.Stack...)
	if whole.File == "" {
		whole.Position, whole.Source, whole.Message = e.Position, r.line(e.Position), e.Message
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

func (r *run) line(p Position) string { return lineOf(r.sources, p) }

func lineOf(sources map[string][]byte, p Position) string {
	if p.Line < 1 {
		return ""
	}
	src, n := sources[p.File], 1
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

func (r *run) compileError(err error) error {
	e := compileError(err, r.sources)
	if name, ok := strings.CutPrefix(e.Message, "undefined: "); ok && !strings.Contains(name, " ") && pythonNames[name] == "" {
		e.Message += didYouMean(name, append(r.predeclared.Keys(), starlark.Universe.Keys()...), "")
	}
	return e
}

// compileError is an error of the parser or the resolver, which finds several at once.
func compileError(err error, sources map[string][]byte) *Error {
	var e *Error
	var scan syntax.Error
	var list resolve.ErrorList
	switch {
	case errors.As(err, &e):
	case errors.As(err, &scan):
		e = &Error{Position: position(scan.Pos), Message: scan.Msg, cause: err}
		e.Hint = notStarlark(lineOf(sources, e.Position))
	case errors.As(err, &list) && len(list) > 0:
		e = &Error{Position: position(list[0].Pos), Message: list[0].Msg, cause: err}
		for _, more := range list[1:min(len(list), 5)] {
			e.Hint += fmt.Sprintf("also line %d: %s\n  ", more.Pos.Line, more.Msg)
		}
		e.Hint = strings.TrimSpace(notHere(&e.Message) + "\n  " + e.Hint)
	default:
		e = &Error{Message: err.Error(), cause: err}
	}
	e.Source = lineOf(sources, e.Position)
	return e
}
