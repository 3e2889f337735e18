package host

import (
	"encoding/json"
	"fmt"
	"math"
)

// args reads the arguments of one call by their types. One that is wrong ends the call: Function.Call returns it as its error.
type args struct {
	f      *Function
	values []any
}

// badArgument is what a call panics with.
type badArgument struct{ err error }

func (a *args) wrong(i int, want string) {
	panic(badArgument{fmt.Errorf("%s: %s: want %s, got %s", a.f.Name, a.f.Params[i].Name, want, describe(a.values[i]))})
}

func (a *args) text(i int) string {
	s, ok := a.values[i].(string)
	if !ok {
		a.wrong(i, "a string")
	}
	return s
}

// textOr is text, or "" where nothing was given.
func (a *args) textOr(i int) string {
	if a.values[i] == nil {
		return ""
	}
	return a.text(i)
}

func (a *args) bytes(i int) []byte {
	switch v := a.values[i].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	a.wrong(i, "a string or bytes")
	return nil
}

func (a *args) bytesOr(i int) []byte {
	if a.values[i] == nil {
		return nil
	}
	return a.bytes(i)
}

func (a *args) integer(i int) int64 {
	switch v := a.values[i].(type) {
	case int64:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	a.wrong(i, "an integer of 64 bits")
	return 0
}

func (a *args) list(i int) []any {
	if a.values[i] == nil {
		return nil
	}
	list, ok := a.values[i].([]any)
	if !ok {
		a.wrong(i, "a list")
	}
	return list
}

func (a *args) texts(i int) []string {
	var out []string
	for _, v := range a.list(i) {
		s, ok := v.(string)
		if !ok {
			a.wrong(i, "a list of strings")
		}
		out = append(out, s)
	}
	return out
}

func (a *args) object(i int) Object {
	if a.values[i] == nil {
		return nil
	}
	o, ok := a.values[i].(Object)
	if !ok {
		a.wrong(i, "a dict with names that are strings")
	}
	return o
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return fmt.Sprintf("the bool %t", v)
	case int64, json.Number:
		return fmt.Sprintf("the int %v", v)
	case float64:
		return fmt.Sprintf("the float %v", v)
	case string:
		return fmt.Sprintf("the string %.40q", v)
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case Object:
		return fmt.Sprintf("a dict of %d", len(v))
	}
	return fmt.Sprintf("a %T", v)
}
