package script

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/big"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

// fromHost is a value of the bench as a script has it.
func fromHost(v any) (starlark.Value, error) {
	switch v := v.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(v), nil
	case int64:
		return starlark.MakeInt64(v), nil
	case int:
		return starlark.MakeInt(v), nil
	case float64:
		return starlark.Float(v), nil
	case string:
		return starlark.String(v), nil
	case []byte:
		return starlark.Bytes(v), nil
	case json.Number:
		return bigInt(v)
	case []any:
		out := make([]starlark.Value, len(v))
		for i := range v {
			var err error
			if out[i], err = fromHost(v[i]); err != nil {
				return nil, err
			}
		}
		return starlark.NewList(out), nil
	case host.Object:
		return dictFromHost(v)
	}
	return nil, fmt.Errorf("the bench gave a %T, which no script has", v)
}

func bigInt(n json.Number) (starlark.Value, error) {
	if len(n) > maxDigits {
		return nil, fmt.Errorf("a number of at most %d digits is wanted, got %d", maxDigits, len(n))
	}
	if i, ok := new(big.Int).SetString(string(n), 10); ok {
		return starlark.MakeBigInt(i), nil
	}
	f, err := n.Float64()
	return starlark.Float(f), err
}

func dictFromHost(o host.Object) (starlark.Value, error) {
	d := starlark.NewDict(len(o))
	for _, m := range o {
		v, err := fromHost(m.Value)
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(starlark.String(m.Name), v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// encodedCopies is how often a text stands in memory while it is written as JSON: in the encoder's buffer and in ours, which grow, and
// in the end as a string.
const encodedCopies = 6

// plain makes of a script's value what the bench takes, strict where bytes have no form. A text that stands in many places is one in the
// value, and as many as copies say where it is written. What is a text itself, and not copied, is no larger than it is.
func (b *budget) plain(v starlark.Value, strict bool, copies int64) (any, error) {
	_, isText := v.(starlark.String)
	if _, isBytes := v.(starlark.Bytes); copies > 1 || !isText && !isBytes {
		w := walk{budget: b}
		err := w.value(v)
		if err == nil {
			err = b.alloc(sum(w.bytes*copies, int64(w.parts)*4*valueBytes), "text with "+kindOf(v))
		}
		if err != nil {
			return nil, err
		}
	}
	c := converter{strict: strict}
	return c.value(v)
}

// A converter makes of a value what the bench takes. Errors say where in the value something stands that JSON does not have.
type converter struct {
	strict bool // bytes have no form
	path   []starlark.Value
	steps  []step // to where it stands
}

// step is one member or element on the way into a value.
type step struct {
	name  string
	index int // where name is ""
}

func (c *converter) value(v starlark.Value) (any, error) {
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return n, nil
		}
		return json.Number(v.String()), nil
	case starlark.Float:
		return float64(v), nil
	case starlark.String:
		return string(v), nil
	case starlark.Bytes:
		if !c.strict {
			return []byte(v), nil
		}
		return nil, c.noForm(v)
	}
	return c.container(v)
}

func (c *converter) container(v starlark.Value) (any, error) {
	if holds(c.path, v) {
		return nil, fmt.Errorf("%s holds itself", c.place())
	}
	c.path = append(c.path, v)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	switch v := v.(type) {
	case *starlark.Dict, *starlarkstruct.Struct:
		return c.object(v)
	case starlark.Sequence:
		return c.list(v)
	}
	return nil, c.noForm(v)
}

func (c *converter) noForm(v starlark.Value) error {
	return fmt.Errorf("%s is a %s, which has no form in JSON", c.place(), v.Type())
}

func (c *converter) list(v starlark.Sequence) (any, error) {
	out := make([]any, 0, v.Len())
	for x := range starlark.Elements(v) {
		item, err := c.at(step{index: len(out)}, x)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func (c *converter) object(v starlark.Value) (any, error) {
	out := host.Object{}
	for k, x := range fields(v) {
		name, ok := k.(starlark.String)
		if !ok {
			return nil, fmt.Errorf("%s has a key of type %s; JSON has strings alone", c.place(), k.Type())
		}
		item, err := c.at(step{name: string(name)}, x)
		if err != nil {
			return nil, err
		}
		out = append(out, host.Member{Name: string(name), Value: item})
	}
	return out, nil
}

// fields are the entries of a dict, or the fields of a struct by their names.
func fields(v starlark.Value) iter.Seq2[starlark.Value, starlark.Value] {
	if d, ok := v.(*starlark.Dict); ok {
		return starlark.Entries(d)
	}
	return func(yield func(name, x starlark.Value) bool) {
		for _, name := range v.(*starlarkstruct.Struct).AttrNames() {
			if !yield(starlark.String(name), field(v, starlark.String(name))) {
				return
			}
		}
	}
}

// field is one of them; nil for none.
func field(v, key starlark.Value) (x starlark.Value) {
	if d, ok := v.(*starlark.Dict); ok {
		x, _, _ = d.Get(key)
		return x
	}
	x, err := v.(*starlarkstruct.Struct).Attr(string(key.(starlark.String)))
	if err != nil {
		return nil
	}
	return x
}

func (c *converter) at(s step, v starlark.Value) (any, error) {
	c.steps = append(c.steps, s)
	x, err := c.value(v)
	c.steps = c.steps[:len(c.steps)-1]
	return x, err
}

// place says where the converter stands: the last steps are enough for people.
func (c *converter) place() string {
	if len(c.steps) == 0 {
		return "the value"
	}
	var b strings.Builder
	b.WriteString("the value's ")
	for _, s := range c.steps[max(0, len(c.steps)-6):] {
		if s.name != "" {
			fmt.Fprintf(&b, "[%q]", short(s.name, 40))
		} else {
			fmt.Fprintf(&b, "[%d]", s.index)
		}
	}
	return b.String()
}
