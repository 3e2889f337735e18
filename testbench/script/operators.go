package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// What values take, roughly, in bytes: an interface value, a pair with its header, an entry of a hash table.
const (
	valueBytes = 16
	pairBytes  = 72
	entryBytes = 112
	maxIntBits = 8 << 20 // of an integer that a multiplication makes
)

// checkedOperators are the functions that the rewriter calls, by their hidden names.
func (r *run) checkedOperators(into starlark.StringDict) {
	for token, name := range operators {
		into[hidden+name] = r.operator(hidden+name, token)
	}
	into[hidden+"+="] = starlark.NewBuiltin(hidden+"+=", r.addInPlace)
	into[hidden+"|="] = starlark.NewBuiltin(hidden+"|=", r.mergeInPlace)
	into[hidden+"key"] = starlark.NewBuiltin(hidden+"key", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return args[0], shallow(args[0])
	})
	into[hidden+"[:]"] = starlark.NewBuiltin(hidden+"[:]", r.copied)
	for name := range methods {
		into[hidden+"."+name] = r.method(name)
	}
}

func (r *run) operator(name string, op syntax.Token) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return r.binary(op, args[0], args[1])
	})
}

func (r *run) binary(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if op == syntax.PERCENT {
		if format, ok := x.(starlark.String); ok {
			return r.interpolate(format, y)
		}
	}
	if err := r.allocResult(op, x, y); err != nil {
		return nil, err
	}
	return starlark.Binary(op, x, y)
}

// allocResult asks for the memory of x op y.
func (r *run) allocResult(op syntax.Token, x, y starlark.Value) error {
	switch op {
	case syntax.STAR:
		return r.allocRepeat(x, y)
	case syntax.PLUS, syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX:
		if n := bytesOf(x) + bytesOf(y); n > 0 {
			return r.budget.alloc(n, kindOf(x)+" of "+size(n))
		}
	}
	return nil
}

func (r *run) allocRepeat(x, y starlark.Value) error {
	if a, ok := x.(starlark.Int); ok {
		if b, ok := y.(starlark.Int); ok {
			return r.allocProduct(a, b)
		}
		x, y = y, x
	}
	times, ok := y.(starlark.Int)
	n := bytesOf(x)
	if !ok || n == 0 || times.Sign() <= 0 {
		return nil
	}
	count, small := times.Int64()
	if !small || count > (1<<62)/n {
		return r.budget.alloc(-1, fmt.Sprintf("%s of %s, repeated %s times", kindOf(x), size(n), short(times.String(), 30)))
	}
	return r.budget.alloc(n*count, fmt.Sprintf("%s of %s, repeated %d times", kindOf(x), size(n), count))
}

func (r *run) allocProduct(x, y starlark.Int) error {
	if _, small := x.Int64(); small {
		return nil
	}
	if bits := x.BigInt().BitLen() + y.BigInt().BitLen(); bits > maxIntBits {
		return &LimitError{Limit: "memory", Value: size(maxIntBits/8) + " for one number", What: fmt.Sprintf("an int of %d bits", bits)}
	}
	return nil
}

// bytesOf is what a copy of x takes, not of what it holds.
func bytesOf(x starlark.Value) int64 {
	switch x := x.(type) {
	case starlark.String:
		return int64(len(x))
	case starlark.Bytes:
		return int64(len(x))
	case *starlark.List:
		return int64(x.Len()) * valueBytes
	case starlark.Tuple:
		return int64(len(x)) * valueBytes
	case *starlark.Dict:
		return int64(x.Len()) * entryBytes
	case *starlark.Set:
		return int64(x.Len()) * entryBytes
	}
	return 0
}

func kindOf(x starlark.Value) string {
	switch x.Type() {
	case "string":
		return "a string"
	case "int":
		return "an int"
	}
	return "a " + x.Type()
}

// addInPlace is `x += y`: a list grows, anything else is added.
func (r *run) addInPlace(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	list, ok := args[0].(*starlark.List)
	if !ok {
		return r.binary(syntax.PLUS, args[0], args[1])
	}
	more, ok := args[1].(starlark.Iterable)
	if !ok {
		return starlark.Binary(syntax.PLUS, args[0], args[1])
	}
	return list, r.extend(list, more)
}

func (r *run) extend(list *starlark.List, more starlark.Iterable) error {
	if err := r.allocGrown(list, more); err != nil {
		return err
	}
	if same, ok := more.(*starlark.List); ok && same == list {
		for i := range list.Len() {
			if err := list.Append(list.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	for v := range starlark.Elements(more) {
		if err := list.Append(v); err != nil {
			return err
		}
	}
	return nil
}

// mergeInPlace is `x |= y`: a dict takes the entries of another, anything else is united.
func (r *run) mergeInPlace(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	x, isDict := args[0].(*starlark.Dict)
	y, bothDicts := args[1].(*starlark.Dict)
	if !isDict || !bothDicts {
		return r.binary(syntax.PIPE, args[0], args[1])
	}
	if err := r.budget.alloc(bytesOf(y), "a dict"); err != nil {
		return nil, err
	}
	for _, item := range y.Items() {
		if err := x.SetKey(item[0], item[1]); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// copied is asked for what a slice or a spread argument copies.
func (r *run) copied(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	switch x := args[0].(type) {
	case starlark.String, starlark.Bytes:
		return x, nil // shares its bytes
	case starlark.Iterable:
		return x, r.allocElements(x, valueBytes, "a copy of "+kindOf(x))
	}
	return args[0], nil
}

// allocGrown asks for the places that list may move to when more is added to it.
func (r *run) allocGrown(list *starlark.List, more starlark.Iterable) error {
	n := int64(list.Len()) + int64(length(more))
	if n > 1<<58 {
		return r.budget.alloc(-1, "a list")
	}
	return r.budget.alloc(n*valueBytes*9/4, fmt.Sprintf("a list of %d elements", n))
}

// allocElements asks for each bytes an element of x.
func (r *run) allocElements(x starlark.Iterable, each int64, what string) error {
	n := int64(length(x))
	if n > (1<<62)/each {
		return r.budget.alloc(-1, what)
	}
	return r.budget.alloc(n*each, fmt.Sprintf("%s of %d elements", what, n))
}

// length counts what does not say its own length.
func length(x starlark.Iterable) int {
	if n := starlark.Len(x); n >= 0 {
		return n
	}
	n := 0
	for range starlark.Elements(x) {
		n++
	}
	return n
}

// short cuts a text for a message.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
