package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// check asks for the memory of a call of a method before it is made; it may give other arguments in place of args.
type check func(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error)

// methods are those of the built-in types that make large values of small ones, or copy. Values of other types may have attributes
// of the same names; nothing is asked there.
var methods = map[string]check{
	"join": checkJoin, "replace": checkReplace, "format": checkFormat,
	"split": checkSplit, "rsplit": checkSplit, "splitlines": checkSplit,
	"upper": checkCase, "lower": checkCase, "title": checkCase, "capitalize": checkCase,
	"append": checkGrowth, "insert": checkGrowth, "extend": checkExtend, "update": checkUpdate, "union": checkUpdate,
	"intersection": checkUpdate, "difference": checkUpdate, "symmetric_difference": checkUpdate,
	"get": checkKey, "pop": checkKey, "setdefault": checkKey, "add": checkKey, "discard": checkKey, "remove": checkKey,
	"keys": checkCopy, "values": checkCopy, "items": checkCopy,
}

// method is the attribute `.name` of its argument; of a built-in type it is one that asks first.
func (r *run) method(name string) *starlark.Builtin {
	return starlark.NewBuiltin(hidden+"."+name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return r.attribute(args[0], name)
	})
}

func (r *run) attribute(x starlark.Value, name string) (starlark.Value, error) {
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
	bound, ok := v.(*starlark.Builtin)
	if check := methods[name]; check != nil && ok && bound.Receiver() != nil {
		return r.asking(bound, check), nil
	}
	return v, nil
}

// asking is b with a check before it.
func (r *run) asking(b *starlark.Builtin, ask check) *starlark.Builtin {
	self := b.Receiver()
	asking := starlark.NewBuiltin(b.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		args, kwargs, err := ask(r, self, args, kwargs)
		if err != nil {
			return nil, err
		}
		return b.CallInternal(t, args, kwargs)
	})
	return asking.BindReceiver(self)
}

func checkJoin(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	sep, ok := self.(starlark.String)
	if !ok || len(args) != 1 {
		return args, kwargs, nil
	}
	list, ok := args[0].(starlark.Iterable)
	if !ok {
		return args, kwargs, nil
	}
	var n int64
	for v := range starlark.Elements(list) {
		n += int64(len(sep)) + bytesOf(v)
	}
	return args, kwargs, r.budget.allocText(n, "join to "+size(n))
}

func checkReplace(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	s, ok := self.(starlark.String)
	if !ok || len(args) < 2 {
		return args, kwargs, nil
	}
	old, isString := args[0].(starlark.String)
	by, areStrings := args[1].(starlark.String)
	if !isString || !areStrings {
		return args, kwargs, nil
	}
	count := int64(strings.Count(string(s), string(old)))
	if len(args) > 2 {
		if n, ok := args[2].(starlark.Int); ok {
			if limit, ok := n.Int64(); ok && limit >= 0 {
				count = min(count, limit)
			}
		}
	}
	n := int64(len(s)) + count*int64(max(0, len(by)-len(old)))
	return args, kwargs, r.budget.alloc(n, "replace to "+size(n))
}

func checkSplit(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	s, ok := self.(starlark.String)
	if !ok {
		return args, kwargs, nil
	}
	parts := int64(1)
	if sep, ok := first(args).(starlark.String); ok && sep != "" {
		parts += int64(strings.Count(string(s), string(sep)))
	} else {
		parts += spaces(string(s))
	}
	return args, kwargs, r.budget.alloc(parts*2*valueBytes, fmt.Sprintf("split into %d parts", parts))
}

func first(args starlark.Tuple) starlark.Value {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// spaces counts bytes that may end a field or a line.
func spaces(s string) (n int64) {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

func checkCase(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	return args, kwargs, r.budget.alloc(2*bytesOf(self), "a string of "+size(bytesOf(self)))
}

func checkKey(_ *run, _ starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	if len(args) == 0 {
		return args, kwargs, nil
	}
	return args, kwargs, shallow(args[0])
}

// checkGrowth asks for the place that a long list may move to.
func checkGrowth(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	if list, ok := self.(*starlark.List); ok {
		if n := int64(list.Len()) * valueBytes * 5 / 4; n > r.budget.memory/16 {
			return args, kwargs, r.budget.measure(n, fmt.Sprintf("a list of %d elements", list.Len()+1))
		}
	}
	return args, kwargs, nil
}

func checkExtend(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	more, ok := first(args).(starlark.Iterable)
	list, isList := self.(*starlark.List)
	if !ok || !isList {
		return args, kwargs, nil
	}
	return args, kwargs, r.allocGrown(list, more)
}

func checkUpdate(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	n := bytesOf(self)
	for _, arg := range args {
		if more, ok := arg.(starlark.Iterable); ok {
			n += int64(length(more)) * entryBytes
			if err := shallowKeys(more); err != nil {
				return nil, nil, err
			}
		}
	}
	return args, kwargs, r.budget.alloc(n, kindOf(self)+" of "+size(n))
}

func checkCopy(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	return args, kwargs, r.budget.alloc(bytesOf(self), kindOf(self)+" of "+size(bytesOf(self)))
}

// checkFormat writes what is no text itself, so that the method meets nothing deep, and asks for the whole.
func checkFormat(r *run, self starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	format, ok := self.(starlark.String)
	if !ok {
		return args, kwargs, nil
	}
	longest := int64(0)
	plain := make(starlark.Tuple, len(args))
	for i, arg := range args {
		if err := r.plain(arg, &plain[i], &longest); err != nil {
			return nil, nil, err
		}
	}
	named := make([]starlark.Tuple, len(kwargs))
	for i, kw := range kwargs {
		named[i] = starlark.Tuple{kw[0], nil}
		if err := r.plain(kw[1], &named[i][1], &longest); err != nil {
			return nil, nil, err
		}
	}
	n := int64(len(format)) + int64(strings.Count(string(format), "{"))*longest
	return plain, named, r.budget.allocText(n, "format to "+size(n))
}

// plain puts v into to, as text where it is a container, and keeps the length of the longest.
func (r *run) plain(v starlark.Value, to *starlark.Value, longest *int64) error {
	switch x := v.(type) {
	case starlark.String, starlark.Int, starlark.Float, starlark.Bool, starlark.NoneType:
		*to = v
	default:
		text, err := r.repr(x)
		if err != nil {
			return err
		}
		*to = written{v, text}
	}
	n := int64(40)
	switch x := (*to).(type) {
	case starlark.String:
		n = 4 * int64(len(x)) // as %r escapes it
	case starlark.Int:
		n = int64(intDigits(x))
	case written:
		n = int64(len(x.text))
	}
	*longest = max(*longest, n)
	return nil
}

func intDigits(x starlark.Int) int {
	if _, small := x.Int64(); small {
		return 20
	}
	return x.BigInt().BitLen()/3 + 2
}

// written is a value whose text has been made already.
type written struct {
	starlark.Value
	text string
}

func (w written) String() string { return w.text }

// interpolate is `format % y`.
func (r *run) interpolate(format starlark.String, y starlark.Value) (starlark.Value, error) {
	longest := int64(0)
	var arg starlark.Value
	switch y := y.(type) {
	case starlark.Tuple:
		plain := make(starlark.Tuple, len(y))
		for i := range y {
			if err := r.plain(y[i], &plain[i], &longest); err != nil {
				return nil, err
			}
		}
		arg = plain
	case *starlark.Dict:
		if !strings.Contains(string(format), "%(") {
			if err := r.plain(y, &arg, &longest); err != nil {
				return nil, err
			}
			break
		}
		plain := starlark.NewDict(y.Len())
		for _, item := range y.Items() {
			var v starlark.Value
			if err := r.plain(item[1], &v, &longest); err != nil {
				return nil, err
			}
			if err := plain.SetKey(item[0], v); err != nil {
				return nil, err
			}
		}
		arg = plain
	default:
		if err := r.plain(y, &arg, &longest); err != nil {
			return nil, err
		}
	}
	n := int64(len(format)) + int64(strings.Count(string(format), "%"))*longest
	if err := r.budget.allocText(n, "a string formatted to "+size(n)); err != nil {
		return nil, err
	}
	return starlark.Binary(percent, format, arg)
}
