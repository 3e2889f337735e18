package script

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// What values take, roughly, in bytes: an interface value, a pair with its header, an entry of a hash table.
const (
	valueBytes = 16
	pairBytes  = 72
	entryBytes = 112
	maxIntBits = 8 << 20 // of an integer that a multiplication makes
)

// A charge is what is asked before a method or a function of the language runs.
type charge struct {
	bytes func(self starlark.Value, args starlark.Tuple) int64 // that it allocates at most; nil asks for none
	looks func(arg starlark.Value) error                       // at an argument, such as one that is hashed; nil at none
	steps bool                                                 // it goes through its arguments
	texts bool                                                 // it writes them
}

// methods are those that make large values of small ones, copy or hash. Values of other types may have attributes of the same names;
// nothing is asked there.
var methods = map[string]charge{
	"join": {bytes: joined}, "replace": {bytes: replaced}, "format": {}, // see formatted
	"split": {bytes: splits}, "rsplit": {bytes: splits}, "splitlines": {bytes: splits},
	"upper": {bytes: rewrites}, "lower": {bytes: rewrites}, "title": {bytes: rewrites}, "capitalize": {bytes: rewrites},
	"append": {bytes: grows}, "insert": {bytes: grows}, "extend": {bytes: extends},
	"update": {bytes: unites, looks: shallowKeys}, "union": {bytes: unites, looks: shallowKeys}, "intersection": {bytes: unites, looks: shallowKeys},
	"difference": {bytes: unites, looks: shallowKeys}, "symmetric_difference": {bytes: unites, looks: shallowKeys},
	"get": {looks: shallow}, "pop": {looks: shallow}, "setdefault": {looks: shallow}, "add": {looks: shallow},
	"discard": {looks: shallow}, "remove": {looks: shallow},
	"keys": {bytes: copies}, "values": {bytes: copies}, "items": {bytes: copies},
}

// functions are those that do so, or go through their arguments.
var functions = map[string]charge{
	"list": {bytes: collects(valueBytes)}, "tuple": {bytes: collects(valueBytes)}, "sorted": {bytes: collects(2 * valueBytes)},
	"set": {bytes: collects(entryBytes), looks: shallowKeys}, "dict": {bytes: collects(entryBytes), looks: shallowKeys},
	"enumerate": {bytes: collects(pairBytes)}, "zip": {bytes: collects(pairBytes)}, "reversed": {bytes: collects(valueBytes)},
	"bytes": {bytes: collects(1)}, "min": {steps: true}, "max": {steps: true}, "any": {steps: true}, "all": {steps: true},
	"str": {texts: true}, "repr": {texts: true}, "int": {looks: hasFewDigits},
}

// charged is a method or a function that asks before it is called.
func (b *budget) charged(own *starlark.Builtin, c charge) *starlark.Builtin {
	self := own.Receiver()
	asks := starlark.NewBuiltin(own.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		err := b.ask(own.Name(), c, self, args)
		if format, ok := self.(starlark.String); ok && own.Name() == "format" {
			values := slices.Clone(args)
			for _, kw := range kwargs {
				values = append(values, kw[1])
			}
			err = b.formatted(format, "{", values)
		}
		if err != nil {
			return nil, err
		}
		return own.CallInternal(t, args, kwargs)
	})
	return asks.BindReceiver(self)
}

func (b *budget) ask(name string, c charge, self starlark.Value, args starlark.Tuple) error {
	for _, arg := range args {
		var err error
		switch {
		case c.looks != nil:
			err = c.looks(arg)
		case c.steps:
			err = b.charge(starlark.Len(arg))
		case c.texts:
			err = b.askToWrite(arg)
		}
		if err != nil {
			return err
		}
	}
	if c.bytes == nil {
		return nil
	}
	return b.alloc(c.bytes(self, args), name)
}

// attribute is the attribute of that name; of a built-in type it is a method that asks first.
func (b *budget) attribute(x starlark.Value, name string) (starlark.Value, error) {
	of, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
	}
	v, err := of.Attr(name)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, fmt.Errorf("%s has no .%s field or method%s", x.Type(), name, didYouMean(name, of.AttrNames(), "."))
	}
	return b.asking(v), nil
}

// asking is a method that asks before it is called; any other value is what it is.
func (b *budget) asking(v starlark.Value) starlark.Value {
	if own, ok := v.(*starlark.Builtin); ok && own.Receiver() != nil {
		if c, known := methods[own.Name()]; known {
			return b.charged(own, c)
		}
	}
	return v
}

// checkedOperators are the functions that the rewriter calls, by their hidden names.
func (b *budget) checkedOperators(into starlark.StringDict) {
	hide := func(name string, do func(args starlark.Tuple) (starlark.Value, error)) {
		into[hidden+name] = starlark.NewBuiltin(hidden+name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return do(args)
		})
	}
	for token, name := range operators {
		hide(name, func(args starlark.Tuple) (starlark.Value, error) {
			if err := b.askFor(token, args[0], args[1]); err != nil {
				return nil, err
			}
			return starlark.Binary(token, args[0], args[1])
		})
		hide(name+"=", func(args starlark.Tuple) (starlark.Value, error) { return args[1], b.askFor(token, args[0], args[1]) })
	}
	hide("key", func(args starlark.Tuple) (starlark.Value, error) {
		return args[0], shallow(args[0])
	})
	hide("[:]", func(args starlark.Tuple) (starlark.Value, error) {
		list, ok := args[0].(starlark.Iterable)
		if !ok { // a text shares its bytes
			return args[0], nil
		}
		return args[0], b.alloc(elementBytesOf(list, valueBytes), "a copy of "+kindOf(list))
	})
	for name := range methods {
		hide("."+name, func(args starlark.Tuple) (starlark.Value, error) {
			return b.attribute(args[0], name)
		})
	}
}

// askFor asks for the memory of x op y.
func (b *budget) askFor(op syntax.Token, x, y starlark.Value) error {
	m, isInt := x.(starlark.Int)
	n, areInts := y.(starlark.Int)
	format, isText := x.(starlark.String)
	switch {
	case op == syntax.PERCENT && isText:
		return b.formatted(format, "%", valuesOf(format, y))
	case op == syntax.PERCENT:
		return nil
	case op != syntax.STAR: // a list that grows takes more than a list
		return b.alloc(max(bytesOf(x)+bytesOf(y), extends(x, starlark.Tuple{y})), kindOf(x))
	case isInt && areInts:
		return productOf(m, n)
	case isInt:
		x, n = y, m
	case !areInts:
		return nil
	}
	times, small := n.Int64()
	if !small {
		times = math.MaxInt64
	}
	if n.Sign() <= 0 {
		return nil
	}
	return b.alloc(product(bytesOf(x), times), kindOf(x))
}

// productOf refuses a product of two integers that is too long.
func productOf(x, y starlark.Int) error {
	if _, small := x.Int64(); small {
		return nil
	}
	if bits := x.BigInt().BitLen() + y.BigInt().BitLen(); bits > maxIntBits {
		return &LimitError{Limit: "memory", Value: size(maxIntBits/8) + " for one number", What: fmt.Sprintf("an int of %d bits", bits)}
	}
	return nil
}

// valuesOf are what `format % y` writes.
func valuesOf(format starlark.String, y starlark.Value) starlark.Tuple {
	if d, ok := y.(*starlark.Dict); ok && strings.Contains(string(format), "%(") {
		var values starlark.Tuple
		for _, v := range starlark.Entries(d) {
			values = append(values, v)
		}
		return values
	}
	if tuple, ok := y.(starlark.Tuple); ok {
		return tuple
	}
	return starlark.Tuple{y}
}

// formatted asks for a format with values in it, each at any of its marks.
func (b *budget) formatted(format starlark.String, mark string, values starlark.Tuple) error {
	longest := int64(40)
	for _, v := range values {
		n, err := b.textLen(v)
		if err != nil {
			return err
		}
		longest = max(longest, n)
	}
	return b.alloc(growing(int64(len(format))+product(int64(strings.Count(string(format), mark)), longest)), "a formatted string")
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

// growing is for what is put together and grows: it has its old place beside the new one.
func growing(n int64) int64 { return n * 9 / 4 }

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

// elements are those of what is given first; of anything else there are none.
func elements(args starlark.Tuple) starlark.Iterable {
	if list, ok := first(args).(starlark.Iterable); ok {
		return list
	}
	return starlark.Tuple(nil)
}

func first(args starlark.Tuple) starlark.Value {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

func joined(self starlark.Value, args starlark.Tuple) (n int64) {
	for v := range starlark.Elements(elements(args)) {
		n += bytesOf(self) + bytesOf(v)
	}
	return growing(n)
}

func replaced(self starlark.Value, args starlark.Tuple) int64 {
	s, isText := self.(starlark.String)
	if !isText || len(args) < 2 {
		return 0
	}
	old, isString := args[0].(starlark.String)
	by, areStrings := args[1].(starlark.String)
	if !isString || !areStrings {
		return 0
	}
	count := int64(strings.Count(string(s), string(old)))
	if len(args) > 2 {
		if n, ok := args[2].(starlark.Int); ok {
			if limit, ok := n.Int64(); ok && limit >= 0 {
				count = min(count, limit)
			}
		}
	}
	return int64(len(s)) + count*int64(max(0, len(by)-len(old)))
}

// splits is for at most a part between two bytes that may end a field or a line.
func splits(self starlark.Value, args starlark.Tuple) int64 {
	s, ok := self.(starlark.String)
	if !ok {
		return 0
	}
	parts := int64(1)
	if sep, ok := first(args).(starlark.String); ok && sep != "" {
		parts += int64(strings.Count(string(s), string(sep)))
	} else {
		for i := range len(s) {
			if s[i] <= ' ' || s[i] >= utf8.RuneSelf {
				parts++
			}
		}
	}
	return parts * 2 * valueBytes
}

func copies(self starlark.Value, _ starlark.Tuple) int64 { return bytesOf(self) }

// rewrites is for letters that have a longer form in another case.
func rewrites(self starlark.Value, _ starlark.Tuple) int64 { return 2 * bytesOf(self) }

// grows is the place that a long list may move to; a short one costs nothing worth to count.
func grows(self starlark.Value, _ starlark.Tuple) int64 {
	const long = 1 << 20 // bytes
	if list, ok := self.(*starlark.List); ok && bytesOf(list) > long {
		return bytesOf(list) * 5 / 4
	}
	return 0
}

func extends(self starlark.Value, args starlark.Tuple) int64 {
	if _, isList := self.(*starlark.List); !isList {
		return 0
	}
	return growing(sum(bytesOf(self), elementBytesOf(elements(args), valueBytes)))
}

func unites(self starlark.Value, args starlark.Tuple) int64 {
	return sum(bytesOf(self), collects(entryBytes)(nil, args))
}

// collects is for the elements of all arguments, each so many bytes, and for texts as they are.
func collects(each int64) func(self starlark.Value, args starlark.Tuple) int64 {
	return func(_ starlark.Value, args starlark.Tuple) (n int64) {
		for _, arg := range args {
			if list, ok := arg.(starlark.Iterable); ok {
				n = sum(n, elementBytesOf(list, each))
			} else {
				n = sum(n, bytesOf(arg))
			}
		}
		return n
	}
}

// Who writes or hashes a value descends as far as that does. So it is walked through before.

const (
	maxDepth = 1000    // of values within values, where somebody writes, compares, sends or hashes them
	maxParts = 1 << 20 // values that a key may be made of, each counted as often as it stands there: hashing meets it as often
)

// A walk goes through a value as who writes or hashes it does.
type walk struct {
	budget *budget          // nil for a key, of which tuples and structs count alone
	path   []starlark.Value // containers that it is in
	parts  int
	bytes  int64 // of the text, at most
}

func (w *walk) value(v starlark.Value) error {
	w.parts++
	switch {
	case w.budget == nil && w.parts > maxParts:
		return &LimitError{Limit: "depth", What: "a key of more values", Value: fmt.Sprint(maxParts)}
	case w.budget == nil:
	case w.bytes > w.budget.memory:
		return w.budget.outOfMemory(0, "the text of a value")
	case w.parts&0xfff == 0 && w.budget.stopped() != nil:
		return w.budget.stopped()
	}
	switch v.(type) {
	case *starlark.Dict, *starlarkstruct.Struct:
		return w.within(v, func() (err error) {
			for name, x := range fields(v) {
				if err = w.value(name); err == nil {
					err = w.value(x)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	case *starlark.List, starlark.Tuple, *starlark.Set:
		return w.list(v.(starlark.Iterable))
	}
	if w.budget != nil {
		w.bytes += writtenLen(v)
	}
	return nil
}

func (w *walk) list(list starlark.Iterable) error {
	return w.within(list, func() error {
		for v := range starlark.Elements(list) {
			if err := w.value(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// within goes into a container, once: of one that holds itself an ellipsis is written. A struct writes all of what it holds again.
func (w *walk) within(v starlark.Value, into func() error) error {
	w.bytes += int64(len("struct()") + len(", ")*max(starlark.Len(v), 0))
	_, isStruct := v.(*starlarkstruct.Struct)
	_, isTuple := v.(starlark.Tuple)
	switch {
	case w.budget == nil && !isStruct && !isTuple: // no key
		return nil
	case len(w.path) >= maxDepth:
		return tooDeep()
	case holds(w.path, v):
		if slices.ContainsFunc(w.path, func(v starlark.Value) bool { _, ok := v.(*starlarkstruct.Struct); return ok }) {
			return tooDeep()
		}
		return nil
	}
	w.path = append(w.path, v)
	err := into()
	w.path = w.path[:len(w.path)-1]
	return err
}

// writtenLen is how long a value that holds no others is at most when it is written, with what stands beside it.
func writtenLen(v starlark.Value) int64 {
	const beside = int64(len(`"": `))
	switch v := v.(type) {
	case starlark.String:
		n := beside + int64(len(v))
		for i := range len(v) {
			if v[i] < ' ' || v[i] >= 0x7f || v[i] == '"' || v[i] == '\\' {
				n += int64(len(`\x00`) - 1)
			}
		}
		return n
	case starlark.Bytes:
		return beside + int64(len(v)*len(`\x00`))
	case starlark.Int:
		if _, small := v.Int64(); !small {
			return beside + int64(v.BigInt().BitLen()/3)
		}
		return 20
	}
	return beside + int64(len(v.String()))
}

func tooDeep() error {
	return &LimitError{Limit: "depth", What: "values within values", Value: fmt.Sprint(maxDepth)}
}

// holds says that v itself stands on a path. Tuples cannot hold themselves.
func holds(path []starlark.Value, v starlark.Value) bool {
	isTuple := func(v starlark.Value) bool { _, ok := v.(starlark.Tuple); return ok }
	return !isTuple(v) && slices.ContainsFunc(path, func(outer starlark.Value) bool { return !isTuple(outer) && outer == v })
}

// textLen is how long the text of a value is at most.
func (b *budget) textLen(v starlark.Value) (int64, error) {
	w := walk{budget: b}
	err := w.value(v)
	return w.bytes, err
}

// str is v as str() gives it: text as it is, anything else as repr.
func (b *budget) str(v starlark.Value) (string, error) {
	if s, ok := v.(starlark.String); ok {
		return string(s), nil
	}
	return b.repr(v)
}

// repr is v as Starlark writes it. Errors: *LimitError for what is too deep or too long.
func (b *budget) repr(v starlark.Value) (string, error) {
	if err := b.askToWrite(v); err != nil {
		return "", err
	}
	return v.String(), nil
}

// askToWrite asks for the text of v.
func (b *budget) askToWrite(v starlark.Value) error {
	n, err := b.textLen(v)
	if err == nil {
		err = b.alloc(growing(n)+n, "the text of "+kindOf(v)) // a text in it is quoted apart
	}
	return err
}

// maxDigits is how long a text may be that becomes an integer: reading one takes the square of its length.
const maxDigits = 100_000

func hasFewDigits(v starlark.Value) error {
	if s, ok := v.(starlark.String); ok && len(s) > maxDigits {
		return fmt.Errorf("int: a text of at most %d digits is wanted, got %d", maxDigits, len(s))
	}
	return nil
}

// shallow refuses a key that nests too deep to be hashed, or is made of too many values.
func shallow(v starlark.Value) error {
	switch v.(type) {
	case starlark.Tuple, *starlarkstruct.Struct:
		return new(walk).value(v)
	}
	return nil
}

// shallowKeys looks at what a set or a dict is about to be made of: keys, or pairs that begin with one.
func shallowKeys(v starlark.Value) error {
	list, ok := v.(starlark.Iterable)
	if _, dict := v.(*starlark.Dict); dict || !ok {
		return nil // its keys have been hashed
	}
	for v := range starlark.Elements(list) {
		err := shallow(v)
		pair, ok := v.(starlark.Indexable)
		if _, text := v.(starlark.String); err == nil && ok && !text && pair.Len() > 0 {
			err = shallow(pair.Index(0))
		}
		if err != nil {
			return err
		}
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
