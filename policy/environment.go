package policy

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/boundre"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// environmentTypes tell the compiler what an expression has: variables, and the functions that the bounder puts in.
var environmentTypes = map[string]any{
	"tool": "", "type": "", "agent": "", "parameters": map[string]any{}, "state": map[string]any{},
	"__charge":  func(...any) any { return nil },
	"__matches": func(any, string) bool { return false },
}

// An environment is what expressions see of one subject; the parameters are decoded once for all of them.
type environment struct {
	parameters map[string]any
}

// environment returns the variables of one evaluation.
func (d *denyExpr) environment(s *subject) map[string]any {
	if s.env == nil {
		s.env = &environment{parameters: s.action.Parameters.Map()}
	}
	b := &budget{maxSpent, d.matchers}
	return map[string]any{
		"tool": s.action.Tool, "type": s.action.Type, "agent": s.agent, "parameters": s.env.parameters, "state": d.state(s.state),
		"__charge": b.charge, "__matches": b.matches,
	}
}

// state is as much of the state as the expression names.
func (d *denyExpr) state(from State) map[string]any {
	out := map[string]any{}
	if from == nil || !d.uses["state"] {
		return out
	}
	keys := d.keys
	if d.whole {
		keys = from.Keys()
	}
	for _, key := range keys {
		if v, ok := from.Lookup(key); ok {
			tree, _ := canonjson.Parse(v.Canonical()) // which was JSON when it became a Value
			out[key] = plain(&tree)
		}
	}
	return out
}

// plain is a value as expressions have it: whole numbers are int, others float64.
func plain(v *canonjson.Value) any {
	switch v.Kind {
	case canonjson.Bool:
		return v.Bool
	case canonjson.String:
		return v.Str
	case canonjson.Number:
		return number(v)
	case canonjson.Array:
		out := make([]any, len(v.Elems))
		for i := range v.Elems {
			out[i] = plain(&v.Elems[i])
		}
		return out
	case canonjson.Object:
		out := make(map[string]any, len(v.Members))
		for i := range v.Members {
			out[v.Members[i].Key] = plain(&v.Members[i].Value)
		}
		return out
	}
	return nil
}

// number is an int where it is whole and fits, so that ids of 19 digits stay apart; else the nearest double.
func number(v *canonjson.Value) any {
	if v.Str != "" {
		if n, err := strconv.Atoi(v.Str); err == nil {
			return n
		}
		return v.Num
	}
	if n := int(v.Num); float64(n) == v.Num && n > -1<<53 && n < 1<<53 {
		return n
	}
	return v.Num
}

// A budget is what is left of one evaluation.
type budget struct {
	left     int
	matchers map[string]*boundre.Regexp
}

var errSpent = errors.New("it looks at more than it may: shorten its loops")

// charge takes the size of a value off the budget, and returns the value.
func (b *budget) charge(args ...any) any {
	b.spend(args[0])
	return args[0]
}

func (b *budget) spend(v any) {
	switch v := v.(type) {
	case string:
		b.take(1 + len(v)/16)
	case []any:
		b.take(1)
		for _, e := range v {
			b.spend(e)
		}
	case map[string]any:
		b.take(1)
		for _, e := range v {
			b.spend(e)
		}
	case []string:
		b.take(1 + len(v))
	default:
		b.take(1)
	}
}

func (b *budget) take(n int) {
	if b.left -= n; b.left < 0 {
		panic(errSpent) // which the machine makes the error of the evaluation
	}
}

// matches is the operator of that name. What is not there matches nothing, as it contains nothing.
func (b *budget) matches(v any, pattern string) bool {
	if v == nil {
		return false
	}
	text, ok := v.(string)
	if !ok {
		panic(fmt.Errorf("matches: expected a text, got %T", v))
	}
	m := b.matchers[pattern]
	b.take(1 + len(text)/16*m.Steps()/4)
	yes, err := m.Match(text)
	if err != nil {
		panic(err)
	}
	return yes
}
