package scriptedllm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A schema is the part of JSON Schema that tools are declared with.
type schema struct {
	Type        types              `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Enum        []any              `json:"enum"`
	Const       any                `json:"const"`
	Default     any                `json:"default"`
	AnyOf       []*schema          `json:"anyOf"`
	OneOf       []*schema          `json:"oneOf"`
}

// UnmarshalJSON takes any JSON: true and false are schemas as well, which say nothing.
func (s *schema) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil
	}
	type plain schema // without this method
	return json.Unmarshal(data, (*plain)(s))
}

// types holds the names of types in lower case; Gemini writes them in upper case.
type types []string

// UnmarshalJSON takes a name or a list of names.
func (t *types) UnmarshalJSON(data []byte) error {
	var list []string
	if bytes.HasPrefix(data, []byte("[")) {
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	} else {
		list = make([]string, 1)
		if err := json.Unmarshal(data, &list[0]); err != nil {
			return err
		}
	}
	for _, name := range list {
		*t = append(*t, strings.ToLower(name))
	}
	return nil
}

func (s *schema) is(name string) bool { return slices.Contains(s.Type, name) }

// resolved returns the first alternative that has a type other than null, for a schema that is only alternatives.
func (s *schema) resolved() *schema {
	if len(s.Type) > 0 || len(s.Properties) > 0 {
		return s
	}
	for _, alt := range slices.Concat(s.AnyOf, s.OneOf) {
		if alt != nil && (len(alt.Type) != 1 || !alt.is("null")) {
			return alt.resolved()
		}
	}
	return s
}

// nullable tells whether null is a value of s. Strict tools require every property and make the optional ones so.
func (s *schema) nullable() bool {
	isNull := func(alt *schema) bool { return alt != nil && alt.is("null") }
	return s.is("null") || slices.ContainsFunc(s.AnyOf, isNull) || slices.ContainsFunc(s.OneOf, isNull)
}

// has tells whether s has a free property of a given slot.
func (s *schema) has(k slot) bool {
	for name, p := range s.Properties {
		if p != nil && len(p.Enum) == 0 && slotOf(name) == k {
			return true
		}
	}
	return false
}
