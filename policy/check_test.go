package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// states is a state of tests.
type states map[string]string

func (s states) Lookup(key string) (Value, bool) {
	text, ok := s[key]
	if !ok {
		return Value{}, false
	}
	v, err := NewValue([]byte(text))
	if err != nil {
		panic(err)
	}
	return v, true
}

func (s states) Keys() (keys []string) {
	for k := range s {
		keys = append(keys, k)
	}
	return keys
}

func parameters(t testing.TB, text string) *Parameters {
	t.Helper()
	p, err := ParseParameters([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustCompile(t testing.TB, rules ...Rule) *Set {
	t.Helper()
	s, err := Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reasons are the violations as "name: reason".
func reasons(v Verdict) []string {
	var out []string
	for _, violation := range v.Violations {
		out = append(out, violation.PolicyName+": "+violation.Reason)
	}
	return out
}

func TestRules(t *testing.T) {
	shell := func(params string) Action {
		return Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: parameters(t, params)}
	}
	noRm := Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "rm -rf"}
	ready := Rule{Name: "p", Rule: RequireState, Key: "ready", Value: json.RawMessage(`{"a":1,"b":[true]}`)}
	const matched, mustBe = "p: param 'command' matches 'rm -rf'", `p: state['ready'] must be {"a":1,"b":[true]}`
	for _, tt := range []struct {
		name   string
		rule   Rule
		action Action
		state  State
		want   string // "" is allowed
	}{
		{"deny_tool", Rule{Name: "p", Rule: DenyTool, Target: "shell"}, shell(``), nil, "p: tool 'shell' denied"},
		{"deny_tool, another", Rule{Name: "p", Rule: DenyTool, Target: "shell"}, Action{Tool: "shells"}, nil, ""},
		{"deny_tool, another case", Rule{Name: "p", Rule: DenyTool, Target: "Shell"}, shell(``), nil, ""},
		{"deny_tool, no call", Rule{Name: "p", Rule: DenyTool, Target: "shell"}, Action{Type: "state_write"}, nil, ""},

		{"deny_tool_param", noRm, shell(`{"command":"sudo rm -rf /"}`), nil, matched},
		{"deny_tool_param, escaped", noRm, shell(`{"c\u006fmmand":"r\u006d -rf"}`), nil, matched},
		{"deny_tool_param, another case", noRm, shell(`{"command":"RM -RF"}`), nil, ""},
		{"deny_tool_param, nothing like it", noRm, shell(`{"command":"ls"}`), nil, ""},
		{"deny_tool_param, another parameter", noRm, shell(`{"cmd":"rm -rf /"}`), nil, ""},
		{"deny_tool_param, another tool", noRm, Action{Tool: "bash", Parameters: parameters(t, `{"command":"rm -rf"}`)}, nil, ""},
		{"deny_tool_param, none", noRm, shell(``), nil, ""},
		{"deny_tool_param, in a list", noRm, shell(`{"command":["x",{"y":"rm -rf"}]}`), nil, matched},
		{"deny_tool_param, in a key", noRm, shell(`{"command":{"rm -rf":1}}`), nil, matched},
		{"deny_tool_param, across a list", Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: `"rm","-rf"`},
			shell(`{"command":[ "rm", "-rf" ]}`), nil, `p: param 'command' matches '"rm","-rf"'`},
		{"deny_tool_param, behind an escape", Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "a\"b\n"},
			shell(`{"command":["a\"b\n"]}`), nil, "p: param 'command' matches 'a\"b\n'"},
		{"deny_tool_param, a number", Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "n", Pattern: "13"}, shell(`{"n":9137}`), nil,
			"p: param 'n' matches '13'"},
		{"deny_tool_param, a large number", Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "n", Pattern: "9007199254740993"},
			shell(`{"n":9007199254740993}`), nil, "p: param 'n' matches '9007199254740993'"},
		{"deny_tool_param, a word", Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "force", Pattern: "true"}, shell(`{"force":true}`), nil,
			"p: param 'force' matches 'true'"},
		{"deny_tool_param, null", Rule{Name: "p", Rule: DenyToolParam, Target: "shell", Key: "force", Pattern: "null"}, shell(`{"force":null}`), nil,
			"p: param 'force' matches 'null'"},

		{"require_state", ready, shell(``), states{"ready": `{"b":[true],"a":1.0}`}, ""},
		{"require_state, another value", ready, shell(``), states{"ready": `{"a":1}`}, mustBe},
		{"require_state, no value", ready, shell(``), states{}, mustBe},
		{"require_state, no state", ready, shell(``), nil, mustBe},
		{"require_state, no call", ready, Action{Type: "state_write"}, nil, mustBe},
		{"require_state, text is no number", Rule{Name: "p", Rule: RequireState, Key: "n", Value: json.RawMessage("1")}, shell(``), states{"n": `"1"`},
			"p: state['n'] must be 1"},
		{"require_state, null is there", Rule{Name: "p", Rule: RequireState, Key: "n"}, shell(``), states{"n": `null`}, ""},
		{"require_state, null is not there", Rule{Name: "p", Rule: RequireState, Key: "n"}, shell(``), states{}, "p: state['n'] must be null"},
		{"require_state, large ids", Rule{Name: "p", Rule: RequireState, Key: "n", Value: json.RawMessage("9007199254740993")}, shell(``),
			states{"n": `9007199254740992`}, "p: state['n'] must be 9007199254740993"},

		{"regex", Rule{Name: "p", Rule: Regex, Target: "shell", Key: "command", Pattern: `\brm\s+-[a-z]*r`}, shell(`{"command":"rm   -fr /"}`), nil,
			`p: param 'command' matches '\brm\s+-[a-z]*r'`},
		{"regex, no match", Rule{Name: "p", Rule: Regex, Target: "shell", Key: "command", Pattern: `^rm`}, shell(`{"command":"ls; rm"}`), nil, ""},
		{"regex, another tool", Rule{Name: "p", Rule: Regex, Target: "bash", Pattern: `.`}, shell(`{"command":"ls"}`), nil, ""},
		{"regex, any tool", Rule{Name: "p", Rule: Regex, Key: "command", Pattern: `ls`}, shell(`{"command":"ls"}`), nil, "p: param 'command' matches 'ls'"},
		{"regex, any parameter", Rule{Name: "p", Rule: Regex, Pattern: `^/etc/`}, shell(`{"a":[{"b":"/etc/passwd"}]}`), nil, "p: a param matches '^/etc/'"},
		{"regex, no parameters", Rule{Name: "p", Rule: Regex, Pattern: `x`}, shell(``), nil, ""},
		{"regex, no call", Rule{Name: "p", Rule: Regex, Pattern: `x`}, Action{Type: "state_write", Parameters: parameters(t, `{"key":"x"}`)}, nil, ""},
		{"regex, too long", Rule{Name: "p", Rule: Regex, Key: "command", Pattern: `a{900}b{900}c{900}`},
			shell(`{"command":"` + strings.Repeat("x", 20_000) + `"}`), nil,
			"p: it cannot be judged, which denies: a text of 20000 bytes is too long for the pattern, which is matched with at most 12427"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.rule).Check(&tt.action, tt.state, "me")
			if got := strings.Join(reasons(v), "\n"); got != tt.want || v.Allowed != (tt.want == "") {
				t.Errorf("got %q, allowed %v; want %q", got, v.Allowed, tt.want)
			}
		})
	}
}

func TestAllViolationsAreCollected(t *testing.T) {
	s := mustCompile(t,
		Rule{Name: "one", Rule: DenyTool, Target: "shell"},
		Rule{Name: "two", Rule: DenyTool, Target: "other"},
		Rule{Name: "three", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "x"},
		Rule{Name: "one", Rule: Expr, Pattern: `agent == "me"`})
	a := Action{ID: "a1", Tool: "shell", Parameters: parameters(t, `{"command":"x"}`)}
	v := s.Check(&a, nil, "me")
	want := []Violation{
		{"one", "a1", "tool 'shell' denied", "deny_tool", ""},
		{"three", "a1", "param 'command' matches 'x'", "deny_tool_param", "command"},
		{"one", "a1", `denied where agent == "me"`, "expr", ""},
	}
	if diff := cmp.Diff(want, v.Violations); diff != "" {
		t.Error(diff)
	}
	if v.Reason() != "tool 'shell' denied (and 2 others)" {
		t.Error(v.Reason())
	}
	if v := (*Set)(nil).Check(&a, nil, "me"); !v.Allowed || v.PolicySet() != mustCompile(t).Digest() {
		t.Error("no set is not the empty set")
	}
	if v := Closed("session", "no such session").Check(&Action{Type: "state_read"}, nil, ""); v.Allowed {
		t.Error("a closed set allows")
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule Rule
		want string
	}{
		{"no name", Rule{Rule: DenyTool, Target: "x"}, "policy 2 without a name: name: expected a text"},
		{"no kind", Rule{Name: "p"}, `policy 2 "p": rule: expected deny_tool, deny_tool_param, require_state, regex, expr or approve, got ""`},
		{"another kind", Rule{Name: "p", Rule: "Deny_Tool"}, `got "Deny_Tool"`},
		{"approve", Rule{Name: "p", Rule: Approve}, "target: approve needs target"},
		{"approve of a parameter", Rule{Name: "p", Rule: Approve, Target: "x", Key: "k"}, "pattern: approve needs target, key, pattern"},
		{"closed", Rule{Name: "p", Rule: "closed"}, `got "closed"`},
		{"deny_tool", Rule{Name: "p", Rule: DenyTool}, `policy 2 "p": target: deny_tool needs target, and there is none`},
		{"deny_tool_param", Rule{Name: "p", Rule: DenyToolParam, Target: "x", Key: "k"}, "pattern: deny_tool_param needs target, key, pattern"},
		{"require_state", Rule{Name: "p", Rule: RequireState}, "key: require_state needs key"},
		{"require_state's value", Rule{Name: "p", Rule: RequireState, Key: "k", Value: json.RawMessage(`{"a":1,"a":2}`)}, "value: expected JSON"},
		{"a value of another rule", Rule{Name: "p", Rule: DenyTool, Target: "x", Value: json.RawMessage(`{`)}, "value: expected JSON"},
		{"regex", Rule{Name: "p", Rule: Regex}, "pattern: regex needs pattern"},
		{"no regular expression", Rule{Name: "p", Rule: Regex, Pattern: "("}, "pattern: expected a regular expression of RE2"},
		{"a bomb", Rule{Name: "p", Rule: Regex, Pattern: "(((a{30}){30}){30}){30}"}, "pattern: expected a regular expression of RE2"},
		{"a smaller bomb", Rule{Name: "p", Rule: Regex, Pattern: strings.Repeat("a{900}", 6)}, "more than 5000 steps"},
		{"expr", Rule{Name: "p", Rule: Expr}, "expr needs its expression"},
		{"expr in a value", Rule{Name: "p", Rule: Expr, Value: json.RawMessage(`7`)}, "value: expr needs its expression as a text"},
		{"long", Rule{Name: "p", Rule: Regex, Pattern: strings.Repeat("x", MaxPattern+1)}, "pattern: 4097 bytes, more than 4096"},
		{"a long name", Rule{Name: strings.Repeat("x", 300), Rule: DenyTool, Target: "x"}, "name: 300 bytes, more than 256"},
		{"no UTF-8", Rule{Name: "p", Rule: DenyTool, Target: "\xff"}, "target: expected UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile([]Rule{{Name: "ok", Rule: DenyTool, Target: "t"}, tt.rule})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if _, err := mustCompile(t).With(tt.rule); err == nil {
				t.Error("With takes it")
			}
		})
	}
	if _, err := Compile(make([]Rule, MaxRules+1)); err == nil {
		t.Error("any number of rules is taken")
	}
}

func TestSetsAreJoinedAndCut(t *testing.T) {
	deny := func(name string) Rule { return Rule{Name: name, Rule: DenyTool, Target: "x"} }
	a, b := mustCompile(t, deny("1"), deny("2")), mustCompile(t, deny("2"))
	joined := Join(nil, a, nil, b)
	if joined.Len() != 3 || joined.Digest() != mustCompile(t, deny("1"), deny("2"), deny("2")).Digest() {
		t.Error("a joined set is not the set of all rules")
	}
	if Join(nil, a, mustCompile(t)) != a || Join() != nil {
		t.Error("one set is joined to another")
	}
	cut, n := joined.Without("2")
	if n != 2 || cut.Digest() != mustCompile(t, deny("1")).Digest() || joined.Len() != 3 {
		t.Errorf("%d taken away, %d are left of %d", n, cut.Len(), joined.Len())
	}
	one, err := a.With(deny("3"))
	two, err2 := a.With(deny("4"))
	if err != nil || err2 != nil || one.Rules()[2].Name != "3" || two.Rules()[2].Name != "4" || a.Len() != 2 {
		t.Error("two sets that grow of one share a place")
	}
	if _, n := (*Set)(nil).Without("x"); n != 0 {
		t.Error(n)
	}
	if s, err := (*Set)(nil).With(deny("1")); err != nil || s.Len() != 1 {
		t.Error(err)
	}
}

func TestParameters(t *testing.T) {
	for _, tt := range []struct{ in, raw, digest, err string }{
		{``, `{}`, "", ""},
		{`null`, `{}`, "", ""},
		{`{}`, `{}`, "", ""},
		{`{ "b":1.0, "a":"\u0041" }`, `{ "b":1.0, "a":"\u0041" }`, `{"a":"A","b":1}`, ""},
		{`[]`, "", "", "expected an object, got an array"},
		{`"x"`, "", "", "expected an object, got a string"},
		{`{"a":1,"a":2}`, "", "", "a second time"},
		{`{"a":"\ud800"}`, "", "", "byte"},
		{`{"a":1}x`, "", "", "byte"},
	} {
		p, err := ParseParameters([]byte(tt.in))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %s", tt.in, err, tt.err)
			}
			continue
		}
		if tt.digest == "" {
			tt.digest = "{}"
		}
		if err != nil || string(p.Raw()) != tt.raw || p.Digest() != sum(tt.digest) {
			t.Errorf("%s: %v, %s", tt.in, err, p.Raw())
		}
	}
}

// However many rules there are, one check ends soon, and what was not looked at is denied.
func TestAllRulesShareWhatACheckMayTake(t *testing.T) {
	var leaves []string
	for range 50_000 {
		leaves = append(leaves, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`)
	}
	a := Action{Tool: "t", Parameters: parameters(t, `{"l":[`+strings.Join(leaves, ",")+`],"s":"`+strings.Repeat("a", 1<<20)+`"}`)}
	patterns, expressions := mustCompile(t), mustCompile(t)
	for range 300 {
		var err, err2 error
		patterns, err = patterns.With(Rule{Name: "p", Rule: Regex, Pattern: `^(a|b|c)*x$`})
		expressions, err2 = expressions.With(Rule{Name: "p", Rule: Expr, Pattern: `any(parameters.l, lower(#) == "x")`})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	for name, s := range map[string]*Set{"patterns": patterns, "expressions": expressions} {
		began := cputime.Spent()
		v := s.Check(&a, nil, "")
		took := cputime.Spent() - began
		if n := len(v.Violations); n == 0 || n > 299 || !strings.Contains(v.Violations[n-1].Reason, "than they may") && !strings.Contains(v.Violations[n-1].Reason, "more than it may") {
			t.Errorf("%s: %d violations, %s", name, n, v.Reason())
		}
		t.Log(name, len(v.Violations), took)
	}
}
