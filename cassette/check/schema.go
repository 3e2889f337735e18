package check

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

//go:embed scenario.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of scenario files, which editors take and which they are read by here. What a
// schema cannot say (that a window ends after it begins) Parse refuses all the same.
func Schema() []byte { return bytes.Clone(schemaText) }

// A shape is a schema, as far as that of scenarios goes.
type shape struct {
	Defs map[string]*shape `json:"$defs"`
	Ref  string            `json:"$ref"`

	Title   string   `json:"title"` // what a value must be, for messages
	Type    string   `json:"type"`  // "" takes anything, where no other member says more
	Const   bool     `json:"const"` // true alone
	Enum    []string `json:"enum"`
	Format  string   `json:"format"` // "regex"
	Pattern string   `json:"pattern"`
	Filled  int      `json:"minLength"`
	Min     float64  `json:"minimum"`
	Max     float64  `json:"maximum"` // 0 for none

	AnyOf    []*shape          `json:"anyOf"` // told apart by what stands there
	Required []string          `json:"required"`
	Members  map[string]*shape `json:"properties"`
	Values   values            `json:"additionalProperties"`
	Names    *shape            `json:"propertyNames"` // of members that have Values
	Items    *shape            `json:"items"`
	MinItems int               `json:"minItems"`
	AllOf    []*shape          `json:"allOf"` // what goes together in an object: each has one of the following, or AnyOf
	OneOf    []*shape          `json:"oneOf"`
	Not      *shape            `json:"not"`
	If       *shape            `json:"if"`
	Then     *shape            `json:"then"`
}

// values are what members of any name hold; nil where there are none of those.
type values struct{ *shape }

// UnmarshalJSON takes false or a schema.
func (v *values) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		return nil
	}
	return json.Unmarshal(b, &v.shape)
}

var scenarioShape = sync.OnceValue(func() *shape {
	s := new(shape)
	if err := json.Unmarshal(schemaText, s); err != nil {
		panic(err) // it is part of this program
	}
	return s
})

// real is the shape that s refers to, or s.
func (s *shape) real() *shape {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return scenarioShape().Defs[name]
	}
	return s
}

// describe names what s takes, for messages.
func (s *shape) describe() string {
	if s = s.real(); s.Title != "" {
		return s.Title
	}
	switch {
	case s.AnyOf != nil:
		all := make([]string, len(s.AnyOf))
		for i, e := range s.AnyOf {
			all[i] = e.describe()
		}
		return strings.Join(all, ", or ")
	case s.Const:
		return "true"
	case s.Enum != nil:
		return "one of " + quotedList(s.Enum)
	case s.Format == "regex":
		return "a regular expression (RE2)"
	case s.Type == "string" && s.Filled > 0:
		return "a text that is not empty"
	}
	names := map[string]string{"object": "an object", "array": "a list", "string": "a text", "integer": "a whole number",
		"number": "a number", "boolean": "true or false", "": "a value"}
	return names[s.Type]
}

// words are all texts that s lists, in whichever of its shapes.
func (s *shape) words() []string {
	all := s.real().Enum
	for _, e := range s.real().AnyOf {
		all = append(all, e.words()...)
	}
	return all
}

// required are the members that each of the shapes asks for.
func required(all []*shape) (names []string) {
	for _, s := range all {
		names = append(names, s.Required...)
	}
	return names
}

// fits holds n against s and adds what is wrong; path names the place in messages.
func (r *reading) fits(n *plainyaml.Node, s *shape, path string) bool {
	before := len(r.errs)
	switch s = s.real(); {
	case s.AnyOf != nil:
		r.fitsEither(n, s, path)
	case s.Type == "object":
		r.fitsObject(n, s, path)
	case s.Type == "array":
		r.fitsList(n, s, path)
	case s.Type == "string" || s.Enum != nil:
		r.fitsText(n, s, path)
	case s.Type == "integer" || s.Type == "number":
		r.fitsNumber(n, s, path)
	case s.Type == "boolean" && n.Kind != plainyaml.Bool, s.Const && (n.Kind != plainyaml.Bool || !n.Truth):
		r.wrong(n, s, path)
	default:
		r.fitsAny(n, path)
	}
	return len(r.errs) == before
}

// wrong adds that n is not what s takes.
func (r *reading) wrong(n *plainyaml.Node, s *shape, path string) {
	hint := ""
	switch words := s.words(); {
	case s.Type == "string" && (n.IsNumber() || n.Kind == plainyaml.Bool):
		hint = "; put it in quotation marks"
	case n.Kind != plainyaml.Text || len(words) == 0:
	case s.Title != "": // which does not list them
		hint = unknownHint(n.Text, words)
	default:
		hint = didYouMean(n.Text, words)
	}
	r.errorf(n.Place, "%s: expected %s, got %s%s", path, s.describe(), n.Got(quote), hint)
}

func (r *reading) fitsText(n *plainyaml.Node, s *shape, path string) {
	switch {
	case n.Kind != plainyaml.Text, s.Enum != nil && !slices.Contains(s.Enum, n.Text), len(n.Text) < s.Filled,
		s.Pattern != "" && !pattern(s.Pattern).MatchString(n.Text):
		r.wrong(n, s, path)
	case s.Format == "regex":
		if _, err := regexp.Compile(n.Text); err != nil {
			why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
			r.errorf(n.Place, "%s: expected %s, got %s: %s", path, s.describe(), quote(n.Text), why)
		}
	}
}

func (r *reading) fitsNumber(n *plainyaml.Node, s *shape, path string) {
	switch {
	case !n.IsNumber(), s.Type == "integer" && (n.Number != math.Trunc(n.Number) || math.Abs(n.Number) >= 1<<53): // 1.0 is a whole number
		r.wrong(n, s, path)
	case n.Number < s.Min:
		r.errorf(n.Place, "%s: expected at least %.0f, got %s", path, s.Min, n.Text)
	case s.Max > 0 && n.Number > s.Max:
		r.errorf(n.Place, "%s: expected at most %.0f, got %s", path, s.Max, n.Text)
	}
}

func (r *reading) fitsList(n *plainyaml.Node, s *shape, path string) {
	if n.Kind != plainyaml.List {
		r.wrong(n, s, path)
		return
	}
	if len(n.Items) < s.MinItems {
		r.errorf(n.Place, "%s: expected at least %d, got %d", path, s.MinItems, len(n.Items))
	}
	for i, item := range n.Items {
		r.fits(item, s.Items, path+index(i))
	}
}

// fitsEither takes the first shape that fits. Where none does, the one that n is nearest to says why.
func (r *reading) fitsEither(n *plainyaml.Node, s *shape, path string) {
	before := len(r.errs)
	for _, e := range s.AnyOf {
		if r.fits(n, e, path) {
			return
		}
		if kind := e.real().Type; kind == "object" && n.Kind == plainyaml.Object || kind == "array" && n.Kind == plainyaml.List {
			return
		}
		r.errs = r.errs[:before]
	}
	r.wrong(n, s, path)
}

// fitsAny refuses what JSON has not.
func (r *reading) fitsAny(n *plainyaml.Node, path string) {
	if n.IsNumber() && (math.IsInf(n.Number, 0) || math.IsNaN(n.Number)) {
		r.errorf(n.Place, "%s: expected a number, got %s", path, n.Text)
	}
	for _, f := range n.Fields {
		r.fitsAny(f.Value, path+"."+f.Key)
	}
	for i, item := range n.Items {
		r.fitsAny(item, path+index(i))
	}
}

func (r *reading) fitsObject(n *plainyaml.Node, s *shape, path string) {
	if n.Kind != plainyaml.Object {
		r.wrong(n, s, path)
		return
	}
	if s.Values.shape != nil {
		if len(n.Fields) == 0 {
			r.errorf(n.Place, "%s: expected at least one key, got none", path)
		}
		for _, f := range n.Fields {
			if r.fits(&plainyaml.Node{Place: f.Place, Kind: plainyaml.Text, Text: f.Key}, s.Names, path) {
				r.fits(f.Value, s.Values.shape, path+"."+f.Key)
			}
		}
		return
	}
	names := slices.Sorted(maps.Keys(s.Members))
	guessed := &plainyaml.Node{} // what unknown keys may have been meant for does not count as missing
	for _, f := range n.Fields {
		if m := s.Members[f.Key]; m != nil {
			r.fits(f.Value, m, join(path, f.Key))
			continue
		}
		r.errorf(f.Place, "%s: unknown key%s", join(path, f.Key), unknownHint(f.Key, names))
		guessed.Fields = append(guessed.Fields, plainyaml.Field{Key: meant.By(f.Key, names), Value: f.Value})
	}
	for _, name := range s.Required {
		if n.Field(name) == nil && guessed.Field(name) == nil {
			r.errorf(n.Place, "%s: expected the key %s, got none", orTop(path), name)
		}
	}
	for _, rule := range s.AllOf {
		r.together(n, guessed, rule, path)
	}
}

// together holds n against a rule of what goes together.
func (r *reading) together(n, guessed *plainyaml.Node, rule *shape, path string) {
	one, some := required(rule.OneOf), required(rule.AnyOf)
	switch got := which(n, one); {
	case one != nil && len(got)+len(which(guessed, one)) != 1:
		r.errorf(n.Place, "%s: expected exactly one of %s, got %s", orTop(path), strings.Join(one, ", "), orNone(got))
	case some != nil && len(which(n, some))+len(which(guessed, some)) == 0:
		r.errorf(n.Place, "%s: expected at least one of %s, got none", orTop(path), strings.Join(some, ", "))
	}
	if rule.Not != nil && len(which(n, rule.Not.Required)) == len(rule.Not.Required) {
		r.errorf(n.Place, "%s: %s do not go together; leave one out", orTop(path), strings.Join(rule.Not.Required, " and "))
	}
	if rule.If == nil {
		return
	}
	member, others := rule.If.Required[0], required(rule.Then.AnyOf)
	if at := n.Field(member); at != nil && len(which(n, others))+len(which(guessed, others)) == 0 {
		r.errorf(at.Place, "%s: goes only with %s, which is not there", join(path, member), strings.Join(others, " or "))
	}
}

// which returns the names of group that stand in n.
func which(n *plainyaml.Node, group []string) (got []string) {
	for _, name := range group {
		if n.Field(name) != nil {
			got = append(got, name)
		}
	}
	return got
}
