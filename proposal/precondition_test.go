package proposal

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOperators(t *testing.T) {
	var s State
	state := s.Scope("")
	for key, value := range map[string]string{
		"n": "3", "f": "2.5", "big": "9007199254740993", "text": `"hello"`, "digits": `"3"`, "null": "null", "yes": "true",
		"list": `[1,"a",{"b":1,"c":2},null]`, "object": `{"b":1.0,"a":[1]}`,
	} {
		if err := state.Set(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		key, operator, value string
		want                 string // "" is that it holds; else part of what is told
	}{
		{"n", "eq", "3", ""},
		{"n", "eq", "3.0", ""},
		{"n", "eq", `"3"`, "state['n'] eq \"3\" does not hold"},
		{"n", "", "3", "unknown operator ''"}, // Parse makes "" eq
		{"big", "eq", "9007199254740992", "does not hold"},
		{"object", "eq", `{ "a":[1], "b":1 }`, ""},
		{"list", "eq", `["a",1]`, "does not hold"},
		{"null", "eq", "null", ""},
		{"none", "eq", "null", ""},
		{"none", "eq", "", ""},
		{"none", "eq", "1", "does not hold"},
		{"n", "neq", "4", ""},
		{"n", "neq", "3.0", "state['n'] neq 3 does not hold"},
		{"none", "neq", "1", ""},
		{"none", "neq", "null", "does not hold"},
		{"n", "gt", "2.9", ""},
		{"n", "gt", "3", "does not hold"},
		{"n", "lt", "3.1", ""},
		{"n", "lt", "3", "does not hold"},
		{"n", "gte", "3", ""},
		{"n", "gte", "3.1", "does not hold"},
		{"f", "lte", "2.5", ""},
		{"f", "lte", "2", "does not hold"},
		{"digits", "gt", "1", "cannot compare string with number"},
		{"n", "gt", `"1"`, "cannot compare number with string"},
		{"none", "lt", "1", "cannot compare null with number"},
		{"yes", "gte", "true", "cannot compare boolean with boolean"},
		{"text", "exists", "", ""},
		{"null", "exists", "", ""},
		{"none", "exists", "", "state['none'] exists does not hold"},
		{"none", "not_exists", "", ""},
		{"null", "not_exists", "", "state['null'] not_exists does not hold"},
		{"text", "contains", `"ell"`, ""},
		{"text", "contains", `"ELL"`, "does not hold"},
		{"text", "contains", `3`, "does not hold"},
		{"list", "contains", `"a"`, ""},
		{"list", "contains", `{"c":2.0,"b":1}`, ""},
		{"list", "contains", `null`, ""},
		{"list", "contains", `2`, "does not hold"},
		{"object", "contains", `"a"`, ""},
		{"object", "contains", `"z"`, "does not hold"},
		{"object", "contains", `1`, "does not hold"},
		{"n", "contains", `3`, "does not hold"},
		{"none", "contains", `""`, "does not hold"},
		{"n", "EQ", "3", "unknown operator 'EQ'"},
		{"n", "between", "3", "unknown operator 'between': expected eq, neq,"},
		{"n", "eq", `{"a":1,"a":2}`, "a second time"},
	} {
		p := Precondition{tt.key, tt.operator, json.RawMessage(tt.value)}
		if got := p.holds(state); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s %s: got %q, want %q", tt.key, tt.operator, tt.value, got, tt.want)
		}
	}
}

func TestPreconditionsReject(t *testing.T) {
	called := 0
	e := &Executor{Tools: counted(t, &called, 0), State: new(State).Scope("")}
	r := runs(t, e, `{"actions":[
		{"id":"a","type":"tool_call","tool":"t","preconditions":[{"key":"x","operator":"exists"}],"failure_behavior":"skip"},
		{"id":"b","type":"state_write","parameters":{"key":"x","value":1},"preconditions":[{"key":"x","operator":"not_exists"}]},
		{"id":"c","type":"tool_call","tool":"t","preconditions":[{"key":"x","value":1},{"key":"x","operator":"gt","value":1}],"failure_behavior":"skip"},
		{"id":"d","type":"state_read","parameters":{"key":"x"},"preconditions":[{"key":"x","operator":"almost"}],"failure_behavior":"skip"},
		{"id":"e","type":"tool_call","tool":"t","preconditions":[{"key":"x","value":1}],"state_dependencies":["x"]},
		{"id":"f","type":"tool_call","tool":"t","state_dependencies":["z"],"failure_behavior":"skip"}]}`)
	want(t, r, "a rejected: precondition: state['x'] exists does not hold", "b succeeded = 1",
		"c rejected: precondition: state['x'] gt 1 does not hold",
		"d rejected: precondition: unknown operator 'almost': expected eq, neq, gt, lt, gte, lte, exists, not_exists or contains",
		"e succeeded = 1", "f rejected: state dependency 'z' not found")
	if called != 1 {
		t.Errorf("the tool was called %d times", called)
	}
}
