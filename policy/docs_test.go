package policy

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// docs returns the fenced blocks of docs/reference/policy.md with their languages.
func docs(t *testing.T) (out [][2]string) {
	t.Helper()
	b, err := os.ReadFile("../docs/reference/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split("\n"+string(b), "\n```")
	for i := 1; i < len(parts); i += 2 {
		fence, text, _ := strings.Cut(parts[i], "\n")
		out = append(out, [2]string{fence, text})
	}
	return out
}

// TestDocumentedRulesJudgeAsDocumented holds each list of calls against the rules above it.
func TestDocumentedRulesJudgeAsDocumented(t *testing.T) {
	var rules []Rule
	kinds := map[string]bool{}
	for _, block := range docs(t) {
		switch block[0] {
		case "yaml whole", "yaml example":
			var err error
			if rules, err = ParseFile("docs/reference/policy.md", []byte(block[1])); err != nil {
				t.Fatal(err)
			}
		case "calls":
			s := mustCompile(t, rules...)
			for _, r := range rules {
				kinds[r.Rule] = true
			}
			for _, line := range strings.Split(block[1], "\n") {
				holds(t, s, line)
			}
		}
	}
	if len(kinds) != 6 {
		t.Errorf("expected calls for six kinds of rules, got %v", kinds)
	}
}

// holds checks one line: allowed or denied, the tool, the parameters, the state.
func holds(t *testing.T, s *Set, line string) {
	t.Helper()
	want, rest, _ := strings.Cut(line, " ")
	tool, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	d := json.NewDecoder(strings.NewReader(rest))
	var params json.RawMessage
	var values map[string]json.RawMessage
	if err := d.Decode(&params); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if d.More() {
		if err := d.Decode(&values); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	state := states{}
	for k, v := range values {
		state[k] = string(v)
	}
	v := s.Check(&Action{ID: "a", Type: "tool_call", Tool: tool, Parameters: parameters(t, string(params))}, state, "me")
	if got := map[bool]string{true: "allowed", false: "denied"}[v.Allowed]; got != want {
		t.Errorf("%s: it is %s: %s", line, got, v.Reason())
	}
}

func TestDocumentedDigestsAreOurs(t *testing.T) {
	seen := 0
	for _, block := range docs(t) {
		if block[0] == "json verdict" {
			s := mustCompile(t, Rule{Name: "no_rm", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "rm -rf"})
			v := s.Check(&Action{ID: "a1", Type: "tool_call", Tool: "shell", Parameters: parameters(t, `{"command":"rm -rf /"}`)}, nil, "")
			got, err := json.MarshalIndent(&v, "", "  ")
			if err != nil || string(got) != block[1] {
				t.Errorf("%v: the verdict is\n%s", err, got)
			}
			seen++
		}
		if block[0] != "digests" {
			continue
		}
		for _, line := range strings.Split(block[1], "\n") {
			f := strings.SplitN(line, " ", 3)
			var got string
			if f[0] == "params" {
				got = parameters(t, f[2]).Digest().String()
			} else {
				var rules []Rule
				if err := json.Unmarshal([]byte(f[2]), &rules); err != nil {
					t.Fatal(err)
				}
				got = mustCompile(t, rules...).Digest().String()
			}
			if got != f[1] {
				t.Errorf("%s: it is %s", line, got)
			}
			seen++
		}
	}
	if seen != 3 {
		t.Errorf("%d digests and verdicts are documented", seen)
	}
}

// TestTheSchemaOfFilesAgrees holds docs/policies.schema.json against the reader: what one takes the other does, as far as a schema
// can say.
func TestTheSchemaOfFilesAgrees(t *testing.T) {
	text, err := os.ReadFile("../docs/policies.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policies.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policies.json")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{
		`[]`, `{}`, `[7]`, `[{"name":"a"}]`, `[{"name":"","rule":"deny_tool","target":"x"}]`, `[{"name":"a","rule":"deny_tool","target":"x"}]`,
		`[{"name":"a","rule":"deny_tool","target":null}]`, `[{"name":"a","rule":"deny_tool","target":"x","key":null}]`,
		`[{"name":"a","rule":"deny_tool"}]`, `[{"name":"a","rule":"deny_tool","target":"x","tool":"y"}]`, `[{"name":"a","rule":"deny_tool","target":7}]`,
		`[{"name":"a","rule":"deny_tool_param","target":"x","key":"k"}]`, `[{"name":"a","rule":"deny_tool_param","target":"x","key":"k","pattern":"p"}]`,
		`[{"name":"a","rule":"require_state"}]`, `[{"name":"a","rule":"require_state","key":"k"}]`, `[{"name":"a","rule":"require_state","key":"k","value":[1]}]`,
		`[{"name":"a","rule":"regex"}]`, `[{"name":"a","rule":"regex","pattern":"x"}]`, `[{"name":"a","rule":"expr"}]`,
		`[{"name":"a","rule":"expr","pattern":"true"}]`, `[{"name":"a","rule":"expr","value":"true"}]`, `[{"name":"a","rule":"expr","value":1}]`,
		`[{"name":"a","rule":"approve"}]`, `[{"name":"a","rule":"approve","target":"x"}]`, `[{"name":"a","rule":"approve","target":"x","key":"k"}]`,
		`[{"name":"a","rule":"approve","target":"x","pattern":"p"}]`, `[{"name":"a","rule":"approve","target":"x","key":"k","pattern":"p"}]`,
		`[{"name":"a","rule":"approve","key":"k","pattern":"p"}]`, `[{"name":"a","rule":"approve","target":"x","key":null,"pattern":""}]`,
	}
	for _, block := range docs(t) {
		if strings.HasPrefix(block[0], "yaml") {
			rules, err := ParseFile("docs", []byte(block[1]))
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(rules)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, string(b))
		}
	}
	for _, file := range files {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		_, readErr := ParseFile("f", []byte(file))
		if schemaErr := schema.Validate(value); (schemaErr == nil) != (readErr == nil) {
			t.Errorf("%s\nthe schema: %v\nthe reader: %v", file, schemaErr, readErr)
		}
	}
}
