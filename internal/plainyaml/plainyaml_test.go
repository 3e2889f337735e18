package plainyaml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a: 1\nb: [1, {c: d}]\n", ""},
		{"\ufeff" + `{"a": [1, 2]}`, ""},
		{"", ""},
		{"# nothing\n", ""},
		{"a: \xff", "1:1: expected UTF-8"},
		{strings.Repeat("a", 2000), "1:1: more than 1000 bytes"},
		{"a: &x 1\nb: *x\n", "1:4: anchors"},
		{"b:\n  - *x\n", "1:1: anchors"},
		{"<<: {a: 1}\n", "1:1: anchors"},
		{"a: !x 1\n", "1:4: expected plain YAML, got the tag !x"},
		{"a: 1\n\"a\": 2\n", "2:1: a: stands here twice"},
		{"[a]: 2\n", "1:1: expected a key that is a text"},
		{"a: 1\n---\nb: 2\n", "3:1: expected one document"},
		{"a: [1\n", "1:"},
		{strings.Repeat("[", 100) + strings.Repeat("]", 100), "1:66: nested"},
		{strings.Repeat("- ", 400), "1:131: nested"},
	} {
		_, err := plainyaml.Parse([]byte(tt.text), 1000)
		var wrong *plainyaml.Error
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%.40q: %v", tt.text, err)
		case tt.want != "" && (!errors.As(err, &wrong) || !strings.HasPrefix(wrong.Error(), tt.want)):
			t.Errorf("%.40q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}
