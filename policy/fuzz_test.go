package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// FuzzRule compiles whatever rule: it is refused, or judges any action, has the digest of its canonical JSON, and reads back from
// that as the same rule.
func FuzzRule(f *testing.F) {
	for _, r := range append(wire, Rule{Name: "r", Rule: Regex, Key: "k", Pattern: `^a+$`}, Rule{Name: "e", Rule: Expr, Pattern: `tool == "x"`},
		Rule{Name: "e", Rule: Expr, Value: []byte(`"any(parameters.l, # > 1)"`)}, Rule{Name: "c", Rule: "closed"}) {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(benched))
	}
	f.Add([]byte(`{"name":"a","rule":"require_state","key":"","value":{"a":1,"a":2}}`), []byte(`{"a":[{"b":"\ud800"}]}`))
	f.Fuzz(func(t *testing.T, rule, params []byte) {
		var r Rule
		if json.Unmarshal(rule, &r) != nil {
			return
		}
		s, err := Compile([]Rule{r})
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		var back []Rule
		canonical := "[" + string(s.rules[0].canonical) + "]"
		if err := json.Unmarshal([]byte(canonical), &back); err != nil {
			t.Fatal(err)
		}
		again, err := Compile(back)
		if err != nil || again.Digest() != s.Digest() || s.Digest() != sum(canonical) {
			t.Fatalf("%s reads back as another rule: %v", canonical, err)
		}
		p, err := ParseParameters(params)
		if err != nil {
			return
		}
		v := s.Check(&Action{ID: "a", Tool: r.Target, Parameters: p}, states{"ready": "true"}, "me")
		if v.Allowed != (len(v.Violations) == 0) || !json.Valid(v.AppendJSON(nil)) {
			t.Fatalf("a verdict that is none: %s", v.AppendJSON(nil))
		}
	})
}

// FuzzExpression compiles and evaluates whatever expression: it ends soon, and says the same again.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		`tool == "shell" && parameters.command contains "rm"`, `any(parameters.l, # matches "^a+$")`, `let a = parameters.s + "x"; a + a == a`,
		`all(parameters.l, all(parameters.l, # in parameters.l))`, `state["x"] ?? state.y?.z == nil`, `-len(filter(parameters, .a)) ** 2 > 1`,
		`parameters.s[1:3] == "ab" ? true : tool in {"a": 1}`, `sum(parameters.l, # * 2) | string() | len() > 3`, `if tool == "" { true } else { false }`,
		`first(parameters.l) not in [1, "x", nil]; true`, `map(parameters.l, {let y = #; y + y})[0] == 2`,
	} {
		f.Add(text)
	}
	p := parameters(f, `{"command":"ls","l":["a","b",1,2.5,null,[1,2],{"a":true}],"s":"abcdef","n":3}`)
	a := &Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: p}
	state := states{"x": `{"y":[1,2,3]}`, "y": `"text"`}
	f.Fuzz(func(t *testing.T, text string) {
		began := cputime.Spent()
		s, err := Compile([]Rule{{Name: "p", Rule: Expr, Pattern: text}})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		one, two := s.Check(a, state, "me"), s.Check(a, state, "me")
		if one.Allowed != two.Allowed || one.Reason() != two.Reason() {
			t.Errorf("%q: %q, then %q", text, one.Reason(), two.Reason())
		}
		if took := cputime.Spent() - began; took > 10*time.Second {
			t.Errorf("%q took %v", text, took)
		}
	})
}

// FuzzFile reads whatever file of policies: it is refused with a place, or every rule of it compiles.
func FuzzFile(f *testing.F) {
	f.Add("- name: a\n  rule: deny_tool\n  target: x\n")
	f.Add(`[{"name":"a","rule":"require_state","key":"k","value":{"a":[1,2.5,"x",null]}}]`)
	f.Add("- {name: a, rule: expr, pattern: 'tool == \"x\"'}\n# and nothing else")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseFile("f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		if _, err := Compile(rules); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
