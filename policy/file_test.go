package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFileOfPolicies(t *testing.T) {
	const yaml = `# what no agent may do
- name: no_rm
  rule: deny_tool_param
  target: shell
  key: command
  pattern: "rm -rf"
- {name: ready, rule: require_state, key: ready, value: {a: [1, 2.5, true, null, "x"], b: 9007199254740993}}
- name: long
  rule: expr
  pattern: |
    tool == "shell" and
      parameters.command contains "sudo"
`
	const json = `[{"name":"no_rm","rule":"deny_tool_param","target":"shell","key":"command","pattern":"rm -rf"},
		{"name":"ready","rule":"require_state","key":"ready","value":{"a":[1,2.5,true,null,"x"],"b":9007199254740993}},
		{"name":"long","rule":"expr","pattern":"tool == \"shell\" and\n  parameters.command contains \"sudo\"\n"}]`
	want := []Rule{
		{Name: "no_rm", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "rm -rf"},
		{Name: "ready", Rule: RequireState, Key: "ready", Value: []byte(`{"a":[1,2.5,true,null,"x"],"b":9007199254740993}`)},
		{Name: "long", Rule: Expr, Pattern: "tool == \"shell\" and\n  parameters.command contains \"sudo\"\n"},
	}
	for name, text := range map[string]string{"yaml": yaml, "json": json, "with a mark": "\ufeff" + yaml} {
		path := filepath.Join(t.TempDir(), "policies")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if got, err := ParseFile("f", []byte("[]")); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestAFileSaysWhereItIsWrong(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "# nothing\n", "f:1:1: expected a list of rules, got nothing; an empty list is []"},
		{"an object", "policies:\n  - name: x\n", "f:1:1: expected a list of rules, got an object"},
		{"a text", "hello", `f:1:1: expected a list of rules, got the text "hello"`},
		{"no rule", "- 7\n", "f:1:3: policy 1: expected a rule with name, rule, …, got the number 7"},
		{"another key", "- name: a\n  rule: deny_tool\n  target: x\n  tool: y\n", `f:4:3: policy "a": tool: expected name, rule, target, key, pattern or value`},
		{"a number for a text", "- name: a\n  rule: deny_tool_param\n  target: x\n  key: k\n  pattern: 5\n", `f:5:12: policy "a": pattern: expected a text, got the number 5: put it in quotes`},
		{"another kind", "- name: a\n  rule: deny\n", `f:2:9: policy "a": rule: expected deny_tool, deny_tool_param, require_state, regex, expr or approve, got "deny"`},
		{"nothing to judge by", "- name: ok\n  rule: deny_tool\n  target: x\n\n- name: a\n  rule: deny_tool\n", `f:5:3: policy "a": target: deny_tool needs target, and there is none`},
		{"no name", "- rule: deny_tool\n  target: x\n", `f:1:3: policy 1: name: expected a text`},
		{"an expression", "- name: a\n  rule: expr\n  pattern: tool = 1\n", `f:3:12: policy "a": pattern: expected an expression: column`},
		{"a bomb", "- name: a\n  rule: regex\n  pattern: '(((a{30}){30}){30}){30}'\n", `f:3:12: policy "a": pattern: expected a regular expression of RE2`},
		{"a key twice", "- name: a\n  name: b\n", `f:2:3: `},
		{"an alias", "- &x {name: a}\n- *x\n", "f:1:3: anchors (&a) and aliases (*a) are not read here"},
		{"no YAML", "- name: [a\n", "f:1:"},
		{"two documents", "[]\n---\n[]\n", "f:3:1: expected one document, got a second one"},
		{"a number that is none", "- {name: a, rule: require_state, key: k, value: .nan}\n", "f:1:49: policy \"a\": expected a number that JSON has, got .nan"},
		{"deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), "f:1:66: nested deeper than any such file is"},
		{"deeper", strings.Repeat("[", 100_000), "f:1:1: exceeded max depth"},
		{"deep by lines", strings.Repeat("- ", 10_000), "nested deeper than any such file is"},
		{"no UTF-8", "- name: \xff\n", "f:1:1: expected UTF-8"},
		{"large", strings.Repeat("# x\n", MaxFile), "f:1:1: more than 1048576 bytes"},
		{"two at once", "- name: a\n  rule: x\n- name: b\n  rule: y\n", "\nf:4:9: policy \"b\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseFile("f", []byte(tt.text))
			var wrong FileErrors
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
