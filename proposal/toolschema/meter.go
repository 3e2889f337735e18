package toolschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A schema of a few hundred bytes can ask for a check of years: each of thirty definitions refers twice to the next. What a
// check may take is therefore counted, in each schema within the compiled one, by the one thing that the library asks about any
// value before it goes deeper: its format.

var errCostly = errors.New("they take more checks by the tool's schema than one call may: make them smaller, or the schema simpler")

// meter puts the counting into every schema that the compiled one reaches.
func (s *Schema) meter() {
	seen := make(map[*jsonschema.Schema]bool)
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			sub, ok := v.Interface().(*jsonschema.Schema)
			if !ok || sub == nil || seen[sub] {
				return
			}
			seen[sub] = true
			fields := v.Elem()
			for i := range fields.NumField() {
				if fields.Type().Field(i).IsExported() {
					walk(fields.Field(i))
				}
			}
			s.count(sub)
		case reflect.Interface:
			walk(v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(v.MapIndex(key))
			}
		}
	}
	walk(reflect.ValueOf(s.compiled))
}

// count makes the format of a schema count, and compare with what the value must be: the library would do that before.
func (s *Schema) count(sub *jsonschema.Schema) {
	allowed := allowed(sub)
	format := sub.Format
	sub.Enum, sub.Const = nil, nil
	sub.Format = &jsonschema.Format{Name: "value", Validate: func(v any) error {
		s.spend(1)
		if allowed != nil {
			s.spend(weight(v))
			if !allowed[text(v)] {
				return fmt.Errorf("it is none of the %d values that are allowed", len(allowed))
			}
		}
		if format != nil && format.Validate != nil {
			return format.Validate(v)
		}
		return nil
	}}
}

// allowed is the values that a schema enumerates, as texts; nil where it does not.
func allowed(sub *jsonschema.Schema) map[string]bool {
	if sub.Enum == nil && sub.Const == nil {
		return nil
	}
	out := make(map[string]bool)
	if sub.Enum != nil {
		for _, v := range sub.Enum.Values {
			out[text(v)] = true
		}
	}
	if sub.Const != nil {
		only := text(*sub.Const)
		ok := sub.Enum == nil || out[only]
		clear(out)
		if ok {
			out[only] = true
		}
	}
	return out
}

func (s *Schema) spend(n int) {
	if s.left -= n; s.left < 0 {
		panic(errCostly)
	}
}

// A boundedRegexp is a pattern of a schema. A text that is too long for it ends the check.
type boundedRegexp struct{ *boundedregexp.Regexp }

// MatchString implements jsonschema.Regexp.
func (r boundedRegexp) MatchString(text string) bool {
	yes, err := r.Match(text)
	if err != nil {
		panic(err)
	}
	return yes
}

// weight is how many values and bytes a comparison of v looks at, in checks.
func weight(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 100
	case []any:
		for _, e := range v {
			n += weight(e)
		}
	case map[string]any:
		for _, e := range v {
			n += weight(e)
		}
	}
	return n
}

// text is the canonical JSON of a value: equal values have equal texts.
func text(v any) string {
	tree := tree(v)
	return string(tree.Append(nil))
}

// tree is a value that the library was given, or read, as canonjson has it.
func tree(v any) canonjson.Value {
	switch v := v.(type) {
	case bool:
		return canonjson.Value{Kind: canonjson.Bool, Bool: v}
	case string:
		return canonjson.Value{Kind: canonjson.String, Str: v}
	case int:
		return whole(v)
	case float64:
		return canonjson.Value{Kind: canonjson.Number, Num: v}
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return whole(n)
		}
		f, _ := strconv.ParseFloat(v.String(), 64)
		return tree(f)
	case []any:
		out := canonjson.Value{Kind: canonjson.Array}
		for _, e := range v {
			out.Elems = append(out.Elems, tree(e))
		}
		return out
	case map[string]any:
		out := canonjson.Value{Kind: canonjson.Object}
		for k, e := range v {
			out.Members = append(out.Members, canonjson.Member{Key: k, Value: tree(e)})
		}
		return out
	}
	return canonjson.Value{}
}

// whole is an integer, by its digits where no double holds it.
func whole(n int) canonjson.Value {
	v := canonjson.Value{Kind: canonjson.Number, Num: float64(n)}
	if math.Abs(v.Num) >= 1<<53 {
		v.Str = strconv.Itoa(n)
	}
	return v
}
