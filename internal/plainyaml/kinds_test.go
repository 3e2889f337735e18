package plainyaml_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// TestWrongKind: a value of another kind is said in plain words, with its line.
func TestWrongKind(t *testing.T) {
	var v struct {
		Text  string              `yaml:"text"`
		List  []string            `yaml:"list"`
		Of    *struct{ A string } `yaml:"of"`
		Many  map[string]string   `yaml:"many"`
		Count int                 `yaml:"count"`
	}
	for text, want := range map[string]string{
		"text: [a]":   "line 1: want a text, not a list: \"text: [a]\"",
		"list: a":     "line 1: want a list, not a text: \"list: a\"",
		"\nof: [a]":   "line 2: want an object, not a list: \"of: [a]\"",
		"many: x y":   "line 1: want an object, not a text: \"many: x y\"",
		"count: many": "line 1: want a number, not a text: \"count: many\"",
		"lists: [a]":  "line 1: unknown key lists: did you mean list?",
	} {
		if err := plainyaml.Decode([]byte(text), 1000, &v); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
