package script

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// A method is what is asked before a method of a built-in type is called.
type method struct {
	bytes  func(self starlark.Value, args starlark.Tuple) int64 // that it allocates at most; nil asks for none
	hashes func(arg starlark.Value) error                       // looks at an argument that is hashed; nil at none
}

// methods are those of the built-in types that make large values of small ones, copy, or hash. Values of other types may have attributes
// of the same names; nothing is asked there.
var methods = map[string]method{
	"join": {bytes: joined}, "replace": {bytes: replacedText}, "format": {}, // see format
	"split": {bytes: splits}, "rsplit": {bytes: splits}, "splitlines": {bytes: splits},
	"upper": {bytes: rewrites}, "lower": {bytes: rewrites}, "title": {bytes: rewrites}, "capitalize": {bytes: rewrites},
	"append": {bytes: grows}, "insert": {bytes: grows}, "extend": {bytes: extends},
	"update": {unites, shallowKeys}, "union": {unites, shallowKeys}, "intersection": {unites, shallowKeys}, "difference": {unites, shallowKeys},
	"symmetric_difference": {unites, shallowKeys},
	"get":                  {hashes: shallow}, "pop": {hashes: shallow}, "setdefault": {hashes: shallow}, "add": {hashes: shallow},
	"discard": {hashes: shallow}, "remove": {hashes: shallow},
	"keys": {bytes: copies}, "values": {bytes: copies}, "items": {bytes: copies},
}

// attribute is the attribute of that name; of a built-in type it is a method that asks first.
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
	return r.asking(v), nil
}

// asking is a method that asks before it is called; any other value is what it is.
func (r *run) asking(v starlark.Value) starlark.Value {
	b, ok := v.(*starlark.Builtin)
	if !ok || b.Receiver() == nil {
		return v
	}
	m, known := methods[b.Name()]
	if !known {
		return v
	}
	self := b.Receiver()
	asking := starlark.NewBuiltin(b.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var err error
		if format, ok := self.(starlark.String); ok && b.Name() == "format" {
			args, kwargs, err = r.formatted(format, args, kwargs)
		}
		for _, arg := range args {
			if err == nil && m.hashes != nil {
				err = m.hashes(arg)
			}
		}
		if err == nil && m.bytes != nil {
			err = r.budget.alloc(m.bytes(self, args), b.Name())
		}
		if err != nil {
			return nil, err
		}
		return b.CallInternal(t, args, kwargs)
	})
	return asking.BindReceiver(self)
}

// put together, a text grows, and has its old place beside the new one.
func growing(n int64) int64 { return n * 9 / 4 }

func joined(self starlark.Value, args starlark.Tuple) (n int64) {
	list, ok := first(args).(starlark.Iterable)
	if !ok {
		return 0
	}
	for v := range starlark.Elements(list) {
		n += bytesOf(self) + bytesOf(v)
	}
	return growing(n)
}

func replacedText(self starlark.Value, args starlark.Tuple) int64 {
	if len(args) < 2 {
		return 0
	}
	s, isText := self.(starlark.String)
	old, isString := args[0].(starlark.String)
	by, areStrings := args[1].(starlark.String)
	if !isText || !isString || !areStrings {
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

func first(args starlark.Tuple) starlark.Value {
	if len(args) == 0 {
		return nil
	}
	return args[0]
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
	more, ok := first(args).(starlark.Iterable)
	if _, isList := self.(*starlark.List); !ok || !isList {
		return 0
	}
	return growing(sum(bytesOf(self), elementBytesOf(more, valueBytes)))
}

func unites(self starlark.Value, args starlark.Tuple) int64 {
	n := bytesOf(self)
	for _, arg := range args {
		if more, ok := arg.(starlark.Iterable); ok {
			n = sum(n, elementBytesOf(more, entryBytes))
		}
	}
	return n
}

// formatted writes what is no text itself, so that the method meets nothing deep, and asks for the whole.
func (r *run) formatted(format starlark.String, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	all := slices.Clone(args)
	for _, kw := range kwargs {
		all = append(all, kw[1])
	}
	plain, err := r.plain(format, "{", all)
	if err != nil {
		return nil, nil, err
	}
	named := make([]starlark.Tuple, len(kwargs))
	for i, kw := range kwargs {
		named[i] = starlark.Tuple{kw[0], plain[len(args)+i]}
	}
	return plain[:len(args)], named, nil
}

// interpolate is `format % y`.
func (r *run) interpolate(format starlark.String, y starlark.Value) (starlark.Value, error) {
	d, isDict := y.(*starlark.Dict)
	tuple, isTuple := y.(starlark.Tuple)
	switch isDict = isDict && strings.Contains(string(format), "%("); {
	case isDict:
		for _, item := range d.Items() {
			tuple = append(tuple, item[1])
		}
	case !isTuple:
		tuple = starlark.Tuple{y}
	}
	plain, err := r.plain(format, "%", tuple)
	if err != nil {
		return nil, err
	}
	var arg starlark.Value = plain
	switch {
	case isDict:
		named := starlark.NewDict(len(plain))
		for i, key := range d.Keys() {
			if err := named.SetKey(key, plain[i]); err != nil {
				return nil, err
			}
		}
		arg = named
	case !isTuple:
		arg = plain[0]
	}
	return starlark.Binary(percent, format, arg)
}

// plain returns values as text where they are containers, and asks for the memory of a format with them, each at any of its marks.
func (r *run) plain(format starlark.String, mark string, values []starlark.Value) (starlark.Tuple, error) {
	longest := int64(40)
	plain := make(starlark.Tuple, len(values))
	for i, v := range values {
		plain[i] = v
		switch x := v.(type) {
		case starlark.String:
			longest = max(longest, 4*int64(len(x))) // as %r escapes it
		case starlark.Int:
			longest = max(longest, int64(intDigits(x)))
		case starlark.Float, starlark.Bool, starlark.NoneType:
		default:
			text, err := r.repr(x)
			if err != nil {
				return nil, err
			}
			plain[i] = written{v, text}
			longest = max(longest, int64(len(text)))
		}
	}
	return plain, r.budget.alloc(growing(int64(len(format))+int64(strings.Count(string(format), mark))*longest), "a formatted string")
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

// maxParts is how many values a key may be made of, each counted as often as it stands there: hashing meets it as often.
const maxParts = 1 << 20

// shallow refuses a key that nests too deep to be hashed, or is made of too many values: hashing a tuple or a struct descends as far as
// they do.
func shallow(v starlark.Value) error {
	switch v.(type) {
	case starlark.Tuple, *starlarkstruct.Struct:
		left := maxParts
		return countParts(v, 0, &left)
	}
	return nil
}

func countParts(v starlark.Value, depth int, left *int) error {
	if *left--; *left < 0 {
		return &LimitError{Limit: "depth", What: "a key of more values", Value: fmt.Sprint(maxParts)}
	}
	if depth > maxDepth {
		return tooDeep()
	}
	switch v := v.(type) {
	case starlark.Tuple:
		for _, x := range v {
			if err := countParts(x, depth+1, left); err != nil {
				return err
			}
		}
	case *starlarkstruct.Struct:
		for _, x := range fields(v) {
			if err := countParts(x, depth+1, left); err != nil {
				return err
			}
		}
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
		if err := shallow(v); err != nil {
			return err
		}
		pair, ok := v.(starlark.Indexable)
		if _, text := v.(starlark.String); !ok || text || pair.Len() == 0 {
			continue
		}
		if err := shallow(pair.Index(0)); err != nil {
			return err
		}
	}
	return nil
}
