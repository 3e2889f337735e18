package policy

import (
	"encoding/json"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/tapedeck-dev/tapedeck/cas"
)

func sum(s string) cas.Digest { return blake3.Sum256([]byte(s)) }

// docs/reference/policy.md says how somebody else computes the digests; these are its words.
func TestDigests(t *testing.T) {
	s := mustCompile(t,
		Rule{Name: "no_rm", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "rm -rf \"é\n"},
		Rule{Name: "ready", Rule: RequireState, Key: "ready", Value: json.RawMessage(` { "b" : 1.0, "a" : [ ] } `)},
		Rule{Name: "null", Rule: RequireState, Key: "x", Value: json.RawMessage(` null `)})
	const text = `[{"key":"command","name":"no_rm","pattern":"rm -rf \"é\n","rule":"deny_tool_param","target":"shell"},` +
		`{"key":"ready","name":"ready","rule":"require_state","value":{"a":[],"b":1}},{"key":"x","name":"null","rule":"require_state"}]`
	if s.Digest() != sum(text) {
		t.Error("the digest of a set is not that of its canonical JSON")
	}
	if (*Set)(nil).Digest() != sum("[]") || mustCompile(t).Digest() != sum("[]") {
		t.Error("the digest of no rules is not that of an empty array")
	}
	v := s.Check(&Action{ID: "a", Tool: "shell", Parameters: parameters(t, `{"z":1, "command":"ls"}`)}, nil, "")
	if v.PolicySet() != s.Digest() || v.ParamsDigest() != sum(`{"command":"ls","z":1}`) {
		t.Error("a verdict names something else")
	}
}

func TestAVerdictAsJSON(t *testing.T) {
	s := mustCompile(t, Rule{Name: "no\"rm", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "rm"})
	for _, tt := range []struct{ params, want string }{
		{`{"command":"ls"}`, `{"kind":"allow"}`},
		{`{"command":"rm"}`, `{"kind":"deny","reason":"param 'command' matches 'rm'","violations":[{"policy_name":"no\"rm","action_id":"a",` +
			`"reason":"param 'command' matches 'rm'","rule":"deny_tool_param","param":"command"}]}`},
	} {
		p := parameters(t, tt.params)
		v := s.Check(&Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: p}, nil, "")
		if got := string(v.AppendJSON(nil)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		whole, err := json.Marshal(&v)
		want := `{"policy_set":"` + s.Digest().String() + `","action_id":"a","type":"tool_call","tool":"shell","params_digest":"` + p.Digest().String() + `","verdict":` + tt.want + `}`
		if err != nil || string(whole) != want {
			t.Errorf("%v\n got %s\nwant %s", err, whole, want)
		}
		violations, err := json.Marshal(v.Violations)
		if err != nil || len(v.Violations) > 0 && string(violations) != "["+string(v.Violations[0].appendJSON(nil))+"]" {
			t.Errorf("by reflection a violation is %s", violations)
		}
	}
}
