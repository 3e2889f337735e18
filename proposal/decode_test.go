package proposal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	two := 2
	for _, tt := range []struct {
		name, text string
		want       Proposal
	}{
		{"the least", `{"actions":[{"type":"tool_call","tool":"t"}]}`, Proposal{Source: "unknown",
			Actions: []Action{{Type: ToolCall, Tool: "t", FailureBehavior: Abort}}}},
		{"nulls", `{"id":null,"source":null,"timestamp":null,"context":null,"actions":[{"id":null,"type":"assertion","tool":null,"parameters":null,
			"preconditions":null,"expected_effects":null,"state_dependencies":null,"idempotent":null,"max_retries":null,"failure_behavior":null,
			"timeout_ms":null,"reversibility":null,"compensation":null,"metadata":null}]}`,
			Proposal{Source: "unknown", Context: json.RawMessage("null"), Actions: []Action{{Type: Assertion, FailureBehavior: Abort,
				Parameters: json.RawMessage("null"), Reversibility: json.RawMessage("null"), Compensation: json.RawMessage("null"), Metadata: json.RawMessage("null")}}}},
		{"all", `{"id":"p","source":"s","timestamp":"t","context":{"a": 1},"dependencies":[],"actions":[{"id":"a","type":"state_write","tool":"x",
			"parameters":{"key":"k"},"preconditions":[{"key":"k","operator":"gt","value":1},{"key":""}],"expected_effects":{"e":[1]},
			"state_dependencies":["d"],"idempotent":true,"max_retries":2.0,"failure_behavior":"retry","timeout_ms":5e3,"reversibility":"full",
			"compensation":{},"metadata":[1],"unknown":{"x":[]}}]}`,
			Proposal{ID: "p", Source: "s", Timestamp: "t", Context: json.RawMessage(`{"a": 1}`), Actions: []Action{{ID: "a", Type: StateWrite, Tool: "x",
				Parameters: json.RawMessage(`{"key":"k"}`), Preconditions: []Precondition{{"k", "gt", json.RawMessage("1")}, {"", "eq", nil}},
				ExpectedEffects: map[string]json.RawMessage{"e": json.RawMessage("[1]")}, StateDependencies: []string{"d"}, Idempotent: true, MaxRetries: &two,
				FailureBehavior: Retry, TimeoutMS: 5000, Reversibility: json.RawMessage(`"full"`), Compensation: json.RawMessage("{}"), Metadata: json.RawMessage("[1]")}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustParse(t, tt.text)
			if tt.want.ID == "" {
				if len(got.ID) != 12 || len(got.Actions[0].ID) != 12 || got.ID == got.Actions[0].ID {
					t.Errorf("ids %q, %q", got.ID, got.Actions[0].ID)
				}
				got.ID, got.Actions[0].ID = "", ""
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
			var again Proposal
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &again); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
		})
	}
}

func TestProposalsThatAreRefused(t *testing.T) {
	many := func(n int, each string) string { return strings.TrimSuffix(strings.Repeat(each+",", n), ",") }
	action := func(rest string) string {
		return `{"actions":[{"type":"tool_call","tool":"t"},{"type":"tool_call",` + rest + `}]}`
	}
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", `{`, "proposal: expected JSON"},
		{"nothing", ``, "proposal: expected JSON"},
		{"null", `null`, "proposal: expected an object, got null"},
		{"a list", `[]`, "proposal: expected an object, got an array"},
		{"no actions", `{"id":"p"}`, "proposal: actions: expected an array, got none"},
		{"null for actions", `{"actions":null}`, "proposal: actions: expected an array, got none"},
		{"an object for actions", `{"actions":{}}`, "proposal: actions: expected an array, got an object"},
		{"an action that is none", `{"actions":[7]}`, "proposal: actions[0]: expected an object, got a number"},
		{"null for an action", `{"actions":[null]}`, "proposal: actions[0]: expected an object, got null"},
		{"no type", `{"actions":[{"tool":"t"}]}`, `proposal: actions[0].type: expected tool_call, state_write, state_read or assertion, got ""`},
		{"another type", `{"actions":[{"type":"Tool_Call"}]}`, `got "Tool_Call"`},
		{"another case of a key", `{"actions":[{"Type":"tool_call"}]}`, `actions[0].type: expected`},
		{"id", action(`"id":7`), "proposal: actions[1].id: expected a string, got a number"},
		{"tool", action(`"tool":["x"]`), "actions[1].tool: expected a string, got an array"},
		{"failure_behavior", action(`"failure_behavior":"Abort"`), `actions[1].failure_behavior: expected abort, retry or skip, got "Abort"`},
		{"idempotent", action(`"idempotent":"yes"`), "actions[1].idempotent: expected true or false, got a string"},
		{"max_retries, a text", action(`"max_retries":"3"`), "actions[1].max_retries: expected a whole number, got a string"},
		{"max_retries, a fraction", action(`"max_retries":1.5`), "actions[1].max_retries: expected a whole number from 0 to 100, got 1.5"},
		{"max_retries, below", action(`"max_retries":-1`), "from 0 to 100, got -1"},
		{"max_retries, above", action(`"max_retries":101`), "from 0 to 100, got 101"},
		{"max_retries, far above", action(`"max_retries":1e999`), "from 0 to 100, got 1e999"},
		{"timeout_ms", action(`"timeout_ms":1e18`), "actions[1].timeout_ms: expected a whole number from 0 to 86400000, got 1e18"},
		{"preconditions", action(`"preconditions":[{"key":"k"},{"value":1}]`), "actions[1].preconditions[1].key: expected the key of a state, got none"},
		{"a precondition's operator", action(`"preconditions":[{"key":"k","operator":1}]`), "actions[1].preconditions[0].operator: expected a string, got a number"},
		{"state_dependencies", action(`"state_dependencies":["a",{}]`), "actions[1].state_dependencies[1]: expected a string, got an object"},
		{"expected_effects", action(`"expected_effects":[]`), "actions[1].expected_effects: expected an object, got an array"},
		{"a key twice", action(`"tool":"a","tool":"b"`), `the key "tool" stands twice`},
		{"a key twice, deep", action(`"parameters":{"a":[{"b":1,"\u0062":2}]}`), `the key "b" stands twice`},
		{"too many actions", `{"actions":[` + many(MaxActions+1, `{"type":"assertion"}`) + `]}`, "actions: more than 1000: split the proposal"},
		{"too many preconditions", action(`"preconditions":[` + many(MaxPreconditions+1, `{"key":"k"}`) + `]`), "actions[1].preconditions: more than 100"},
		{"too many dependencies", action(`"state_dependencies":[` + many(MaxDependencies+1, `"k"`) + `]`), "more than 100"},
		{"deep", `{"actions":[],"context":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`, "expected JSON"},
		{"not UTF-8", "{\"actions\":[],\"id\":\"\xff\"}", "not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			var se *SyntaxError
			if !errors.As(err, &se) || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 500 {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	var effects []string
	for i := range MaxEffects + 1 {
		effects = append(effects, fmt.Sprintf(`"k%d":1`, i))
	}
	if _, err := Parse([]byte(action(`"expected_effects":{` + strings.Join(effects, ",") + `}`))); err == nil {
		t.Error("any number of effects is taken")
	}
}

// FuzzParse reads whatever proposal: it is refused with a *SyntaxError, or what it was read as reads back as the same, and runs
// to results for every action.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"actions":[{"type":"tool_call","tool":"t","parameters":{"a":1}}]}`))
	f.Add([]byte(`{"id":"p","actions":[{"id":"a","type":"state_write","parameters":{"key":"k","value":[1]},"expected_effects":{"e":1}},
		{"id":"b","type":"assertion","parameters":{"key":"k","operator":"contains","expected":1},"state_dependencies":["e","a"]}]}`))
	f.Add([]byte(`{"actions":[{"type":"state_read","parameters":{"key":"\ud800"},"preconditions":[{"key":"x","operator":"lt","value":1e308}]}]}`))
	f.Add([]byte(`{"actions":[{"type":"tool_call","max_retries":0,"failure_behavior":"skip","timeout_ms":1,"idempotent":false,"id":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			var se *SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(b)
		if err != nil {
			t.Fatalf("%s is written as %s, which is refused: %v", text, b, err)
		}
		b2, err := json.Marshal(again)
		if err != nil || string(b) != string(b2) {
			t.Fatalf("%s reads back as %s", b, b2)
		}
		for i := range p.Actions { // waiting has tests of its own
			p.Actions[i].MaxRetries, p.Actions[i].Idempotent = new(int), false
		}
		r, err := (&Executor{Tools: table{"t": &Tool{Call: echo}}}).Run(t.Context(), p)
		if err != nil {
			var cycle *CycleError
			if !errors.As(err, &cycle) {
				t.Fatal(err)
			}
			return
		}
		for i, res := range r.Results {
			if res.Status == "" || res.ActionID != p.Actions[i].ID {
				t.Fatalf("action %d: %+v", i, res)
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
