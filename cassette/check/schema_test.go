package check_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

var _ = check.UpdateFlag()

// TestSchemaIsPublished holds docs/scenario.schema.json to what is embedded here.
func TestSchemaIsPublished(t *testing.T) {
	b, err := os.ReadFile("../../docs/scenario.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, check.Schema()) {
		t.Error("docs/scenario.schema.json is not cassette/check/scenario.schema.json")
	}
}

func schemaOf(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(check.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("scenario.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validates tells whether the schema takes YAML.
func validates(t testing.TB, s *jsonschema.Schema, text string) error {
	t.Helper()
	var y any
	if err := yaml.Unmarshal([]byte(text), &y); err != nil {
		return err
	}
	b, err := json.Marshal(y)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

const top = "version: 1\ncassette: {id: x, sha256: a000000000000000000000000000000000000000000000000000000000000000}\n"

// What is refused, where, and with which words. The schema refuses them too, but for those that it cannot say.
var refused = []struct {
	name, text string
	at         string // line:column
	words      string
	schemaToo  bool
}{
	{"an unknown key", top + "assertion: []\n", "3:1", `unknown key; did you mean "assertions"?`, true},
	{"no assertions", top, "1:1", "expected the key assertions, got none", true},
	{"another version", "version: 2\n", "1:10", "expected at most 1, got 2", true},
	{"no list", top + "assertions: {}\n", "3:13", "expected a list, got an object", true},
	{"an empty list", top + "assertions: []\n", "3:13", "expected at least 1, got 0", true},
	{"no family", top + "assertions:\n  - name: x\n", "4:5", "expected exactly one of frame, state, timing, input, service, process, got none", true},
	{"two families", top + "assertions:\n  - frame: {contains: a, at: 1}\n    process: {exit_code: 0}\n", "4:5", "got frame and process", true},
	{"a misspelt key", top + "assertions:\n  - frame: {kontains: a, at: 1}\n", "4:13", `frame.kontains: unknown key; did you mean "contains"?`, true},
	{"no when", top + "assertions:\n  - frame: {contains: a}\n", "4:12", "expected exactly one of at, eventually, never, always, got none", true},
	{"two whens", top + "assertions:\n  - frame: {contains: a, at: 1, never: true}\n", "4:12", "got at and never", true},
	{"never false", top + "assertions:\n  - frame: {contains: a, never: false}\n", "4:33", "expected true, or a time", true},
	{"a number for a text", top + "assertions:\n  - frame: {contains: 12, at: 1}\n", "4:23", "expected a text that is not empty, got the number 12; put it in quotation marks", true},
	{"a bad time", top + "assertions:\n  - frame: {contains: a, at: 1.5 seconds}\n", "4:30", `expected a time in ms`, true},
	{"a time below 0", top + "assertions:\n  - frame: {contains: a, at: -1}\n", "4:30", `expected a time in ms`, true},
	{"a bad expression", top + "assertions:\n  - frame: {matches: 'a(', at: 1}\n", "4:22", "missing closing )", true},
	{"row and region", top + "assertions:\n  - frame: {contains: a, at: 1, row: 1, region: {row: 1, col: 1, rows: 1, cols: 1}}\n", "4:12", "row and region do not go together", true},
	{"for without eventually", top + "assertions:\n  - frame: {contains: a, at: 1, for: 1s}\n", "4:38", "goes only with eventually", true},
	{"a region of nothing", top + "assertions:\n  - frame: {contains: a, at: 1, region: {row: 1, col: 1, rows: 0, cols: 1}}\n", "4:64", "expected at least 1, got 0", true},
	{"no state", top + "assertions:\n  - state: {at: 1}\n", "4:12", "expected at least one of cursor, size", true},
	{"an unknown mode", top + "assertions:\n  - state: {modes: {bracket_paste: true}, at: 1}\n", "4:21", `did you mean "bracketed_paste"?`, true},
	{"an unknown underline", top + "assertions:\n  - state: {style: {text: a, underline: curley}, at: 1}\n", "4:41", `did you mean "curly"?`, true},
	{"an unknown colour", top + "assertions:\n  - state: {style: {text: a, fg: purple}, at: 1}\n", "4:34", `expected a colour`, true},
	{"a column without a row", top + "assertions:\n  - state: {style: {col: 1, bold: true}, at: 1}\n", "4:20", `expected exactly one of row, text, got none`, true},
	{"an unknown key name", top + "assertions:\n  - input: {keys: [ctrl-cc]}\n", "4:20", `expected a key like`, true},
	{"a bad path", top + "assertions:\n  - service: {path: type, equals: x}\n", "4:21", `expected a JSON path`, true},
	{"equals without a path", top + "assertions:\n  - service: {equals: x}\n", "4:23", `goes only with path`, true},
	{"one text in order", top + "assertions:\n  - timing: {order: [a]}\n", "4:21", `expected at least 2, got 1`, true},
	{"a short digest", "version: 1\ncassette: {id: x, sha256: \"00\"}\nassertions:\n  - process: {exit_code: 0}\n", "2:27", `expected a SHA-256`, true},
	{"a window that ends before it begins", top + "assertions:\n  - frame: {contains: a, eventually: {from: 2s, to: 1s}}\n", "4:38", `expected an end after the beginning (2s), got 1s`, false},
	{"max below min", top + "assertions:\n  - timing: {total: {min: 2, max: 1}}\n", "4:21", `expected max to be at least min`, false},
	{"blanks alone", top + "assertions:\n  - frame: {contains: ' ', at: 1}\n", "4:23", `which every screen has`, false},
	{"an alias", top + "assertions: &a\n  - *a\n", "3:13", `write it out`, false},
	{"a key twice", top + "assertions:\n  - frame: {contains: a, contains: b, at: 1}\n", "4:26", `stands here twice`, false},
	{"nothing", "", "1:1", "got an empty file", false},
	{"broken YAML", "version: [1\n", "1:1", "", false},
	{"a mask that there is not", top + "normalise: {disable: [nonsense]}\nassertions:\n  - process: {exit_code: 0}\n", "3:12", `no mask is named "nonsense"`, false},
	{"a mask of one's own by a name that is taken", top + "normalise: {extra: [{name: socket, pattern: x}]}\nassertions:\n  - process: {exit_code: 0}\n", "3:12", `mask "socket": the name is taken`, false},
	{"an order with one text twice", top + "assertions:\n  - timing: {order: [a, a]}\n", "4:21", "got one twice", false},
	{"an exit code of a signalled program", top + "assertions:\n  - process: {exit_code: 1, signal: SIGTERM}\n", "4:14", "leave one out", false},
}

func TestRefused(t *testing.T) {
	schema := schemaOf(t)
	for _, r := range refused {
		t.Run(r.name, func(t *testing.T) {
			_, err := check.Parse("s.yaml", []byte(r.text))
			if err == nil {
				t.Fatal("expected it to be refused")
			}
			var se *check.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("expected a SyntaxError, got %v", err)
			}
			if want := "s.yaml:" + r.at + ": "; !strings.Contains("\n"+err.Error(), "\n"+want) || !strings.Contains(err.Error(), r.words) {
				t.Errorf("expected %s…%s, got\n%v", want, r.words, err)
			}
			if got := validates(t, schema, r.text); r.schemaToo && got == nil {
				t.Error("the schema takes it")
			}
		})
	}
}

// TestOneMistakeIsToldOnce: a misspelt key is not missing, too.
func TestOneMistakeIsToldOnce(t *testing.T) {
	text := strings.Replace(top, "cassette", "kassette", 1) + "assertions:\n  - fame: {contains: a, at: 1}\n  - frame: {contain: a, at: 1}\n"
	_, err := check.Parse("s.yaml", []byte(text))
	if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("expected three errors, got\n%v", err)
	}
}

func TestSchemaTakesWhatParseTakes(t *testing.T) {
	schema := schemaOf(t)
	for _, p := range pairs {
		for _, a := range []string{p.passes, p.fails} {
			if err := validates(t, schema, top+"assertions:\n  - "+strings.ReplaceAll(a, "\n", "\n    ")+"\n"); err != nil {
				t.Errorf("%s: %v", a, err)
			}
		}
	}
}
