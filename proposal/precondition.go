package proposal

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// holds says what keeps p from being true in a state; "" is nothing. A value that is not there is null to eq, neq and contains.
//
//	eq neq            the same JSON value, or not: 1 is 1.0, and the order of keys does not count
//	gt lt gte lte     both are numbers
//	exists not_exists the key has a value, which may be null
//	contains          a string in a string, an element in an array, a key in an object
func (p *Precondition) holds(state policy.State) string {
	have, exists := state.Lookup(p.Key)
	want, err := policy.NewValue(p.Value)
	if err != nil {
		return fmt.Sprintf("state['%.100s']: the value to compare with: %v", p.Key, err)
	}
	var yes bool
	switch p.Operator {
	case "eq":
		yes = have.Equal(want)
	case "neq":
		yes = !have.Equal(want)
	case "exists":
		yes = exists
	case "not_exists":
		yes = !exists
	case "gt", "lt", "gte", "lte":
		var problem string
		if yes, problem = p.compare(have, want); problem != "" {
			return problem
		}
	case "contains":
		yes = contains(have, want)
	default:
		return fmt.Sprintf("unknown operator '%.100s': expected eq, neq, gt, lt, gte, lte, exists, not_exists or contains", p.Operator)
	}
	if yes {
		return ""
	}
	if p.Operator == "exists" || p.Operator == "not_exists" {
		return fmt.Sprintf("state['%.100s'] %s does not hold", p.Key, p.Operator)
	}
	return fmt.Sprintf("state['%.100s'] %s %.200s does not hold", p.Key, p.Operator, want.Canonical())
}

// compare orders two numbers, as doubles.
func (p *Precondition) compare(have, want policy.Value) (yes bool, problem string) {
	a, aErr := canonjson.Parse(have.Canonical())
	b, bErr := canonjson.Parse(want.Canonical())
	if aErr != nil || bErr != nil || a.Kind != canonjson.Number || b.Kind != canonjson.Number {
		return false, fmt.Sprintf("state['%.100s']: cannot compare %s with %s: %s needs two numbers", p.Key, a.Kind, b.Kind, p.Operator)
	}
	switch p.Operator {
	case "gt":
		return a.Num > b.Num, ""
	case "lt":
		return a.Num < b.Num, ""
	case "gte":
		return a.Num >= b.Num, ""
	}
	return a.Num <= b.Num, ""
}

func contains(have, want policy.Value) bool {
	tree, err := canonjson.Parse(have.Canonical())
	if err != nil {
		return false
	}
	text, err := canonjson.Parse(want.Canonical())
	isText := err == nil && text.Kind == canonjson.String
	switch tree.Kind {
	case canonjson.String:
		return isText && strings.Contains(tree.Str, text.Str)
	case canonjson.Object:
		_, ok := tree.Get(text.Text())
		return isText && ok
	case canonjson.Array:
		var room []byte
		for i := range tree.Elems {
			if room = tree.Elems[i].Append(room[:0]); bytes.Equal(room, want.Canonical()) {
				return true
			}
		}
	}
	return false
}
