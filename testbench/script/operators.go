package script

import (
	"fmt"
	"math"
	"math/bits"

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
	type function = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)
	hide := func(name string, do function) { into[hidden+name] = starlark.NewBuiltin(hidden+name, do) }
	for token, name := range operators {
		hide(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return r.binary(token, args[0], args[1])
		})
	}
	hide("+=", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if _, isList := args[0].(*starlark.List); isList {
			if _, ok := args[1].(starlark.Iterable); ok {
				return r.grow(t, "extend", args)
			}
		}
		return r.binary(syntax.PLUS, args[0], args[1])
	})
	hide("|=", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		_, isDict := args[0].(*starlark.Dict)
		if _, ok := args[1].(*starlark.Dict); isDict && ok {
			return r.grow(t, "update", args)
		}
		return r.binary(syntax.PIPE, args[0], args[1])
	})
	hide("key", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return args[0], shallow(args[0])
	})
	hide("[:]", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return args[0], r.copied(args[0])
	})
	for name := range methods {
		hide("."+name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return r.attribute(args[0], name)
		})
	}
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

// grow is `x op= y` where x becomes more of what it is: that method of it.
func (r *run) grow(t *starlark.Thread, method string, args starlark.Tuple) (starlark.Value, error) {
	f, err := r.attribute(args[0], method)
	if err == nil {
		_, err = f.(*starlark.Builtin).CallInternal(t, args[1:], nil)
	}
	return args[0], err
}

// allocResult asks for the memory of x op y.
func (r *run) allocResult(op syntax.Token, x, y starlark.Value) error {
	switch op {
	case syntax.STAR:
		return r.allocRepeat(x, y)
	case syntax.PLUS, syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX:
		if n := bytesOf(x) + bytesOf(y); n > 0 {
			return r.budget.alloc(n, kindOf(x))
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
	if !small {
		count = math.MaxInt64
	}
	return r.budget.alloc(product(n, count), kindOf(x))
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

// mostBytes is more than any limit, and can be multiplied by a few.
const mostBytes = math.MaxInt64 / 16

// product and sum are those of numbers that are not negative, at most mostBytes.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > mostBytes {
		return mostBytes
	}
	return int64(lo)
}

func sum(a, b int64) int64 { return min(a, mostBytes) + min(b, mostBytes) }

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

// elementBytesOf is what the elements of x take, each so many bytes. What does not say its own length is counted.
func elementBytesOf(x starlark.Iterable, each int64) int64 {
	n := int64(starlark.Len(x))
	if n < 0 {
		n = 0
		for range starlark.Elements(x) {
			n++
		}
	}
	return product(n, each)
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

// copied asks for what a slice or a spread argument copies; a text shares its bytes.
func (r *run) copied(x starlark.Value) error {
	if list, ok := x.(starlark.Iterable); ok {
		return r.budget.alloc(elementBytesOf(list, valueBytes), "a copy of "+kindOf(x))
	}
	return nil
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
