package check

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
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
