package fidelity

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestVerdictsOfPolicies: a replay asks no policy, and that is a note. Two runs that both asked compare, whatever their calls are
// called.
func TestVerdictsOfPolicies(t *testing.T) {
	judged := func(id, verdict string) *tape.PolicyVerdict {
		return &tape.PolicyVerdict{
			PolicySet: "p", ActionID: id, Tool: "rm", ParamsDigest: sum("{}"),
			Verdict: json.RawMessage(strings.ReplaceAll(verdict, "ID", id)),
		}
	}
	const allow, deny = `{"kind":"allow"}`, `{"kind":"deny","violations":[{"policy_name":"p","action_id":"ID"}]}`
	for _, mode := range []Mode{Semantic, ByteIdentical, Outcome} {
		for _, kinds := range [][2][]tape.Kind{
			{{judged("a", deny), program("", 0)}, {program("", 0)}},
			{{program("", 0)}, {judged("a", allow), program("", 0)}},
		} {
			r := compareLanes(t, mode, kinds[0], kinds[1], nil)
			if len(r.Divergences) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "verdicts of policies do not gate") {
				t.Errorf("%v: %+v, notes %q", mode, r.Divergences, r.Notes)
			}
		}
	}
	r := compareLanes(t, Semantic, []tape.Kind{judged("a", deny), program("", 0)}, []tape.Kind{judged("b", deny), program("", 0)}, nil)
	if len(r.Divergences)+len(r.Notes) > 0 {
		t.Errorf("two names of one call: %+v, notes %q", r.Divergences, r.Notes)
	}
	r = compareLanes(t, Semantic, []tape.Kind{judged("a", deny), program("", 0)}, []tape.Kind{judged("a", allow), program("", 0)}, nil)
	if len(r.Divergences) != 1 || r.Divergences[0].Category != "policy_verdict" {
		t.Errorf("two verdicts: %+v", r.Divergences)
	}
}
