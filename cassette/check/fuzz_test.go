package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// FuzzParse: no text panics or hangs the reader, what it refuses has a place, and what it takes the schema takes.
func FuzzParse(f *testing.F) {
	for _, p := range pairs {
		f.Add(top + "assertions:\n  - " + p.passes + "\n  - name: x\n    " + p.fails + "\n")
	}
	for _, r := range refused {
		f.Add(r.text)
	}
	f.Add(top + "normalise: {home: /h, extra: [{name: n, pattern: x}]}\nassertions:\n  - process: {exit_code: 0}\n")
	f.Add(`{"version": 1, "cassette": {"id": "a", "sha256": "` + strings.Repeat("a", 64) + `"}, "assertions": [{"process": {"exit_code": 0}}]}`)
	f.Add(strings.Repeat("[", 200))
	f.Add(strings.Repeat("- ", 500))
	schema := schemaOf(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := check.Parse("f.yaml", []byte(text))
		if err == nil {
			if s.Len() == 0 {
				t.Error("taken without assertions")
			}
			if err := validates(t, schema, text); err != nil && !strings.Contains(err.Error(), "yaml") {
				t.Logf("%q", text)
				t.Errorf("taken, and refused by the schema: %v", err)
			}
			return
		}
		var se *check.SyntaxError
		if !errors.As(err, &se) || se.Line < 1 || se.Column < 1 {
			t.Errorf("expected a place, got %v", err)
		}
	})
}
