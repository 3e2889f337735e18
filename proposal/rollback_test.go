package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// Whatever a proposal does: where it was aborted, the state is what it was; else it is what its actions that succeeded wrote, in
// the order in which they ran, and their state_changes say so. What waits for an action that aborted never ran.
func TestAnAbortedProposalLeavesNothing(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	value := rapid.SampledFrom([]string{"1", "2", `"x"`, `[1,2]`, `{"y":null}`, "null"})
	aborted, done := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		scope := new(State).Scope("t")
		for _, k := range rapid.SliceOfDistinct(key, rapid.ID[string]).Draw(rt, "before") {
			if err := scope.Set(k, []byte(value.Draw(rt, "value"))); err != nil {
				rt.Fatal(err)
			}
		}
		before := scope.Snapshot()
		p := &Proposal{ID: "p"}
		for i := range rapid.IntRange(1, 8).Draw(rt, "actions") {
			a := Action{ID: fmt.Sprint(i), Type: rapid.SampledFrom([]string{ToolCall, StateWrite, StateWrite, StateRead, Assertion}).Draw(rt, "type"),
				Tool:            rapid.SampledFrom([]string{"echo", "echo", "fail", "denied", "none"}).Draw(rt, "tool"),
				FailureBehavior: rapid.SampledFrom([]string{Abort, Skip, Skip}).Draw(rt, "behaviour")}
			a.Parameters = fmt.Appendf(nil, `{"key":%q,"value":%s}`, key.Draw(rt, "key"), value.Draw(rt, "value"))
			for _, k := range rapid.SliceOfN(key, 0, 2).Draw(rt, "effects") {
				if a.ExpectedEffects == nil {
					a.ExpectedEffects = map[string]json.RawMessage{}
				}
				a.ExpectedEffects[k] = json.RawMessage(value.Draw(rt, "value"))
			}
			if rapid.IntRange(0, 5).Draw(rt, "condition") == 0 {
				a.Preconditions = []Precondition{{key.Draw(rt, "key"), "eq", json.RawMessage(value.Draw(rt, "value"))}}
			}
			p.Actions = append(p.Actions, a)
		}
		e := &Executor{State: scope, Policies: compiled(t, policy.Rule{Name: "no", Rule: policy.DenyTool, Target: "denied"}),
			Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"echo": echo, "fail": fail, "denied": fail})}
		r, err := e.Run(t.Context(), p)
		var cycle *CycleError
		if errors.As(err, &cycle) {
			return
		} else if err != nil {
			rt.Fatal(err)
		}
		g := newGraph(p.Actions)
		order, _ := g.order()
		g.hold(order)
		want, stopped, skipped := before, false, false
		ends := func(i int) bool { return r.Results[i].Status != Succeeded && p.Actions[i].FailureBehavior == Abort }
		for _, i := range order {
			res := &r.Results[i]
			if slices.ContainsFunc(g.before[i], func(w int) bool { return ends(w) || r.Results[w].Status == Skipped }) && res.Status != Skipped {
				rt.Fatalf("action %d is %s, and the proposal was aborted by one that it waits for", i, res.Status)
			}
			stopped, skipped = stopped || ends(i) && res.Status != Skipped, skipped || res.Status == Skipped
			for k, change := range res.StateChanges {
				var set struct {
					Op    string
					Value json.RawMessage
				}
				if err := json.Unmarshal(change, &set); err != nil || set.Op != "set" || res.Status != Succeeded {
					rt.Fatalf("a change %s of an action that is %s: %v", change, res.Status, err)
				}
				want[k] = set.Value
			}
		}
		if skipped && !stopped {
			rt.Fatalf("an action is skipped, and the proposal was not aborted: %v", summary(r))
		}
		if diff := cmp.Diff(want, scope.Snapshot()); diff != "" {
			rt.Fatalf("aborted %v; state (- want, + got):\n%s", stopped, diff)
		}
		for _, res := range r.Results {
			if stopped && len(res.StateChanges) > 0 || res.RolledBack != (stopped && res.Status == Succeeded) {
				rt.Fatalf("aborted %v, and a result is %+v", stopped, res)
			}
		}
		if c := r.Cost; c.ActionsExecuted+c.ActionsRejected+c.ActionsSkipped != len(p.Actions) {
			rt.Fatalf("%+v of %d actions", c, len(p.Actions))
		}
		if stopped {
			aborted++
		} else {
			done++
		}
	})
	if aborted == 0 || done == 0 {
		t.Errorf("%d proposals were aborted, %d were not: nothing is known of the others", aborted, done)
	}
}
