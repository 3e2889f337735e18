package policy

import (
	"math"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// environmentTypes tell the compiler what an expression has: variables, and the functions that the bounder puts in.
var environmentTypes = map[string]any{
	"tool": "", "type": "", "agent": "", "parameters": map[string]any{}, "state": map[string]any{},
	"__charge":  func(...any) any { return nil },
	"__chars":   func(...any) any { return nil },
	"__matches": func(any, string) bool { return false },
}

// environment returns the variables of one evaluation.
func (d *denyExpr) environment(s *subject) map[string]any {
	shared := s.scratch()
	if shared.plain == nil {
		shared.plain = s.action.Parameters.Map()
	}
	return map[string]any{
		"tool": s.action.Tool, "type": s.action.Type, "agent": s.agent, "parameters": shared.plain, "state": d.state(s.state),
		"__charge": shared.charge, "__chars": shared.chars,
		"__matches": func(v any, pattern string) bool { return shared.matches(v, d.matchers[pattern]) },
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
	if math.Abs(v.Num) < 1<<53 {
		if n := int(v.Num); float64(n) == v.Num {
			return n
		}
	}
	return v.Num
}
