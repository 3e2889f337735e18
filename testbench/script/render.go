package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

const percent = syntax.PERCENT

// maxDepth is how deep values may be nested where somebody writes, compares or sends them.
const maxDepth = 1000

// str is v as str() gives it: text as it is, anything else as repr.
func (r *run) str(v starlark.Value) (string, error) {
	if s, ok := v.(starlark.String); ok {
		return string(s), nil
	}
	return r.repr(v)
}

// repr is v as Starlark writes it. Errors: *LimitError for what is too deep or too long.
func (r *run) repr(v starlark.Value) (string, error) {
	w := writer{budget: r.budget}
	if err := w.value(v); err != nil {
		return "", err
	}
	return w.String(), nil
}

// writer writes values. Unlike Value.String it does not descend without end, and asks for its memory.
type writer struct {
	strings.Builder
	budget *budget
	path   []starlark.Value // containers that are being written
	asked  int
}

func (w *writer) value(v starlark.Value) error {
	if w.Len()-w.asked > 1<<16 {
		if err := w.budget.alloc(int64(2*(w.Len()-w.asked)), "the text of "+kindOf(v)); err != nil {
			return err
		}
		w.asked = w.Len()
		if err := w.budget.stopped(); err != nil {
			return err
		}
	}
	switch v := v.(type) {
	case starlark.String:
		return w.quote(string(v))
	case *starlark.List:
		return w.within(v, "[", "]", func() error { return w.list(v) })
	case starlark.Tuple:
		return w.tuple(v)
	case *starlark.Dict:
		return w.within(v, "{", "}", func() error { return w.fields(v) })
	case *starlark.Set:
		return w.within(v, "set([", "])", func() error { return w.list(v) })
	case *starlarkstruct.Struct:
		return w.within(v, "struct(", ")", func() error { return w.fields(v) })
	default:
		w.WriteString(v.String())
	}
	return nil
}

// quote writes a text in quotes, piece by piece: whole it would stand in memory several times.
func (w *writer) quote(s string) error {
	w.WriteByte('"')
	for len(s) > 0 {
		n := min(len(s), quotedPiece)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		q := syntax.Quote(s[:n], false)
		if w.Cap()-w.Len() < len(q) && w.Cap() > quotedPiece { // it moves
			if err := w.budget.alloc(2*int64(w.Cap()), "the text of a string"); err != nil {
				return err
			}
		}
		w.WriteString(q[1 : len(q)-1])
		s = s[n:]
	}
	w.WriteByte('"')
	return nil
}

const quotedPiece = 1 << 16 // bytes of a text

// within descends into a container, once: one that holds itself is written as an ellipsis.
func (w *writer) within(v starlark.Value, begin, end string, write func() error) error {
	if len(w.path) >= maxDepth {
		return tooDeep()
	}
	if holds(w.path, v) {
		w.WriteString(begin + "..." + end)
		return nil
	}
	w.WriteString(begin)
	w.path = append(w.path, v)
	err := write()
	w.path = w.path[:len(w.path)-1]
	w.WriteString(end)
	return err
}

func tooDeep() error {
	return &LimitError{Limit: "depth", What: "values within values", Value: fmt.Sprint(maxDepth)}
}

// holds says that v itself stands on a path. Tuples cannot hold themselves.
func holds(path []starlark.Value, v starlark.Value) bool {
	if _, tuple := v.(starlark.Tuple); tuple {
		return false
	}
	for _, outer := range path {
		if _, tuple := outer.(starlark.Tuple); !tuple && outer == v {
			return true
		}
	}
	return false
}

func (w *writer) tuple(v starlark.Tuple) error {
	end := ")"
	if len(v) == 1 {
		end = ",)"
	}
	return w.within(v, "(", end, func() error { return w.list(v) })
}

func (w *writer) list(list starlark.Iterable) error {
	sep := ""
	for v := range starlark.Elements(list) {
		w.WriteString(sep)
		sep = ", "
		if err := w.value(v); err != nil {
			return err
		}
	}
	return nil
}

// fields writes the entries of a dict, or the fields of a struct.
func (w *writer) fields(v starlark.Value) error {
	_, dict := v.(*starlark.Dict)
	sep := ""
	for k, x := range fields(v) {
		w.WriteString(sep)
		sep = ", "
		if !dict {
			w.WriteString(string(k.(starlark.String)) + " = ")
		} else if err := w.value(k); err != nil {
			return err
		} else {
			w.WriteString(": ")
		}
		if err := w.value(x); err != nil {
			return err
		}
	}
	return nil
}
