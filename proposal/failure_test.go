package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// counted is a tool t that fails the first times, and gives how often it was called.
func counted(t *testing.T, called *int, fails int) table {
	return tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"t": func(_ context.Context, c *Call) (json.RawMessage, error) {
		*called++
		if c.Attempt > fails {
			return fmt.Append(nil, *called), nil
		}
		return nil, fmt.Errorf("failure %d", c.Attempt)
	}})
}

func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		name, action string // what the action says
		fails        int
		want         string
		called       int
		waited       time.Duration
		next         string // what becomes of the next action
	}{
		{"abort", ``, 1, "failed: failure 1", 1, 0, "skipped"},
		{"skip", `"failure_behavior":"skip"`, 1, "failed: failure 1", 1, 0, "succeeded"},
		{"retry", `"failure_behavior":"retry"`, 2, "succeeded = 3", 3, 300 * time.Millisecond, "succeeded"},
		{"retry to the end", `"failure_behavior":"retry"`, 9, "failed: failure 4", 4, 700 * time.Millisecond, "skipped"},
		{"retry once", `"failure_behavior":"retry","max_retries":1`, 9, "failed: failure 2", 2, 100 * time.Millisecond, "skipped"},
		{"never retried", `"failure_behavior":"retry","max_retries":0`, 9, "failed: failure 1", 1, 0, "skipped"},
		{"not without a reason", `"max_retries":5`, 9, "failed: failure 1", 1, 0, "skipped"},
		{"idempotent", `"idempotent":true`, 1, "succeeded = 2", 2, 100 * time.Millisecond, "succeeded"},
		{"idempotent, to the end", `"idempotent":true,"max_retries":2`, 9, "failed: failure 3", 3, 300 * time.Millisecond, "skipped"},
		{"idempotent and skipped", `"idempotent":true,"max_retries":1,"failure_behavior":"skip"`, 9, "failed: failure 2", 2, 100 * time.Millisecond, "succeeded"},
		{"long", `"failure_behavior":"retry","max_retries":9`, 9, "succeeded = 10", 10, (100 + 200 + 400 + 800 + 1600 + 3200 + 6400 + 10000 + 10000) * time.Millisecond, "succeeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called := 0
				e := &Executor{Tools: counted(t, &called, tt.fails)}
				extra := tt.action
				if extra != "" {
					extra = "," + extra
				}
				began := time.Now()
				r := runs(t, e, `{"actions":[{"id":"a","type":"tool_call","tool":"t"`+extra+`},{"id":"b","type":"state_read","parameters":{"key":"x"}}]}`)
				if got := summary(r)[0]; got != "a "+tt.want || r.Results[1].Status != tt.next {
					t.Errorf("got %q, then %s", got, r.Results[1].Status)
				}
				if called != tt.called || r.Cost.ToolCalls != tt.called || r.Cost.Retries != tt.called-1 || time.Since(began) != tt.waited {
					t.Errorf("called %d times in %v; cost %+v", called, time.Since(began), r.Cost)
				}
			})
		})
	}
}

func TestADenialIsNeverRetried(t *testing.T) {
	called, judged := 0, 0
	e := &Executor{Tools: counted(t, &called, 0), Policies: compiled(t, policy.Rule{Name: "no", Rule: policy.DenyTool, Target: "t"}),
		Judged: func(context.Context, *Action, *policy.Verdict) error { judged++; return nil }}
	r := runs(t, e, `{"actions":[{"id":"a","type":"tool_call","tool":"t","failure_behavior":"retry","idempotent":true},
		{"id":"b","type":"state_read","parameters":{"key":"x"}}]}`)
	want(t, r, "a rejected: policy 'no': tool 't' denied", "b skipped: skipped: an action before it was not done, and the proposal was aborted")
	if called != 0 || judged != 1 || r.Cost.Retries != 0 || r.Cost.ActionsRejected != 1 || r.Cost.ActionsSkipped != 1 || r.Cost.ToolCalls != 0 {
		t.Errorf("called %d times, judged %d times, %+v", called, judged, r.Cost)
	}
}

func TestEachAttemptHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		e := &Executor{Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"t": func(ctx context.Context, c *Call) (json.RawMessage, error) {
			attempts = append(attempts, c.Attempt)
			if c.Attempt == 3 {
				return json.RawMessage(`"done"`), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})}
		var timedOut []bool
		e.Done = func(_ context.Context, o *Outcome) error { timedOut = append(timedOut, o.TimedOut); return nil }
		r := runs(t, e, `{"actions":[{"id":"a","type":"tool_call","tool":"t","failure_behavior":"retry","timeout_ms":1000}]}`)
		want(t, r, `a succeeded = "done"`)
		if diff := cmp.Diff([]int{1, 2, 3}, attempts); diff != "" || r.Results[0].DurationMS != 2300 || r.Cost.Retries != 2 {
			t.Errorf("%s %+v", diff, r)
		}
		if diff := cmp.Diff([]bool{false}, timedOut); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAProposalIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	state := new(State).Scope("")
	e := &Executor{State: state, Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"t": func(ctx context.Context, _ *Call) (json.RawMessage, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}})}
	r, err := e.Run(ctx, mustParse(t, `{"actions":[{"id":"a","type":"state_write","parameters":{"key":"k","value":1}},
		{"id":"b","type":"tool_call","tool":"t","timeout_ms":60000,"failure_behavior":"retry"},
		{"id":"c","type":"tool_call","tool":"t","failure_behavior":"skip","state_dependencies":["b"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, "a succeeded = 1 (rolled back)", "b failed: tool 't': the proposal was cancelled", "c skipped: skipped: the proposal was cancelled")
	if state.Exists("k") {
		t.Error("its state stays")
	}
}

func TestAbortTakesTheStateBack(t *testing.T) {
	state := new(State).Scope("x")
	for key, value := range map[string]string{"old": `{"v": 1}`, "kept": "true"} {
		if err := state.Set(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	before := state.Snapshot()
	var during map[string]json.RawMessage
	e := &Executor{State: state, Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"fail": fail, "look": func(context.Context, *Call) (json.RawMessage, error) {
		during = state.Snapshot()
		return nil, nil
	}})}
	r := runs(t, e, `{"id":"p","actions":[
		{"id":"a","type":"state_write","parameters":{"key":"old","value":2},"expected_effects":{"new":[1]}},
		{"id":"b","type":"tool_call","tool":"look","expected_effects":{"old":3}},
		{"id":"c","type":"tool_call","tool":"fail","expected_effects":{"never":1}},
		{"id":"d","type":"state_read","parameters":{"key":"old"}}]}`)
	want(t, r, "a succeeded = 2 (rolled back)", "b succeeded (rolled back)", "c failed: it broke",
		"d skipped: skipped: an action before it was not done, and the proposal was aborted")
	if string(during["old"]) != "2" || string(during["new"]) != "[1]" {
		t.Errorf("while it runs others see %s", during)
	}
	if diff := cmp.Diff(before, state.Snapshot()); diff != "" {
		t.Errorf("state (- before, + after):\n%s", diff)
	}
	for _, a := range r.Results {
		if a.StateChanges == nil || len(a.StateChanges) > 0 {
			t.Errorf("%s has state_changes %s", a.ActionID, a.StateChanges)
		}
	}
	r.Cost.TotalDurationMS = 0
	if diff := cmp.Diff(Cost{ToolCalls: 2, ActionsExecuted: 3, ActionsSkipped: 1}, r.Cost); diff != "" {
		t.Error(diff)
	}
}

func TestStateActions(t *testing.T) {
	state := new(State).Scope("")
	r := runs(t, &Executor{State: state}, `{"id":"p","actions":[
		{"id":"w","type":"state_write","parameters":{"key":"k","value":{"a": 1}},"expected_effects":{"done":true}},
		{"id":"r","type":"state_read","parameters":{"key":"k"}},
		{"id":"none","type":"state_read","parameters":{"key":"none"}},
		{"id":"null","type":"state_write","parameters":{"key":"n"}},
		{"id":"a1","type":"assertion","parameters":{"key":"k","value":{"a":1.0}}},
		{"id":"a2","type":"assertion","parameters":{"key":"k","expected":{"a":1}}},
		{"id":"a3","type":"assertion","parameters":{"key":"n","operator":"exists"},"preconditions":[{"key":"done","value":true}]},
		{"id":"a4","type":"assertion","preconditions":[{"key":"done","operator":"neq","value":false}]},
		{"id":"f1","type":"assertion","parameters":{"key":"k","value":2},"failure_behavior":"skip"},
		{"id":"f2","type":"assertion","failure_behavior":"skip"},
		{"id":"f3","type":"assertion","preconditions":[{"key":"done","value":false}],"failure_behavior":"skip"},
		{"id":"f4","type":"assertion","parameters":{"key":"k","operator":7},"failure_behavior":"skip"},
		{"id":"f5","type":"state_write","parameters":{"value":1},"failure_behavior":"skip"},
		{"id":"f6","type":"state_read","failure_behavior":"skip"},
		{"id":"f7","type":"state_read","parameters":[],"failure_behavior":"skip"}]}`)
	const unknown = ": expected eq, neq, gt, lt, gte, lte, exists, not_exists or contains"
	want(t, r, `w succeeded = {"a": 1}`, `r succeeded = {"a": 1}`, `none succeeded = null`, `null succeeded = null`,
		`a1 succeeded = true`, `a2 succeeded = true`, `a3 succeeded = true`, `a4 succeeded = true`,
		`f1 failed: assertion failed: state['k'] eq 2 does not hold`,
		`f2 failed: assertion failed: it asserts nothing: expected parameters key and value, or preconditions`,
		`f3 failed: assertion failed: state['done'] eq false does not hold`,
		`f4 failed: assertion failed: unknown operator '7'`+unknown,
		`f5 failed: `+errNoKey.Error(), `f6 failed: `+errNoKey.Error(), `f7 rejected: parameters: expected an object, got an array`)
	changes, err := json.Marshal(r.Results[0].StateChanges)
	if err != nil || string(changes) != `{"done":{"op":"set","value":true},"k":{"op":"set","value":{"a":1}}}` {
		t.Errorf("%s, %v", changes, err)
	}
	if got, err := json.Marshal(state.Snapshot()); err != nil || string(got) != `{"done":true,"k":{"a":1},"n":null}` {
		t.Errorf("%s, %v", got, err)
	}
}

// An attempt that fails half-way leaves nothing, also where the proposal goes on.
func TestAFailedAttemptLeavesNothing(t *testing.T) {
	state := new(State).Scope("")
	r := runs(t, &Executor{State: state}, `{"actions":[
		{"id":"a","type":"state_write","parameters":{"key":"k","value":1}},
		{"id":"b","type":"state_write","parameters":{"key":"k","value":2},"expected_effects":{"x":"\ud800"},"failure_behavior":"skip"},
		{"id":"c","type":"state_read","parameters":{"key":"k"}}]}`)
	if got := summary(r); !strings.HasPrefix(got[1], "b failed: expected_effects: value of \"x\": json, byte") || got[2] != "c succeeded = 1" {
		t.Error(got)
	}
	if len(r.Results[1].StateChanges) != 0 {
		t.Errorf("its changes are %s", r.Results[1].StateChanges)
	}
	if got := string(state.Get("k")); got != "1" {
		t.Errorf("the value is %s", got)
	}
}

func TestPoliciesJudgeEveryAction(t *testing.T) {
	e := &Executor{State: new(State).Scope(""), Agent: "me", Policies: compiled(t,
		policy.Rule{Name: "ready", Rule: policy.RequireState, Key: "ready", Value: json.RawMessage("true")},
		policy.Rule{Name: "calls", Rule: policy.Expr, Pattern: `type == "state_write" && tool != "" || agent != "me"`})}
	r := runs(t, e, `{"actions":[{"id":"a","type":"state_write","tool":"t","parameters":{"key":"ready","value":true},"failure_behavior":"skip"}]}`)
	want(t, r, "a rejected: policy 'ready': state['ready'] must be true")
	if err := e.State.Set("ready", []byte("true")); err != nil {
		t.Fatal(err)
	}
	want(t, runs(t, e, `{"actions":[{"id":"a","type":"state_read","parameters":{"key":"ready"}}]}`), "a succeeded = true")
}

func TestAHookEndsTheProposal(t *testing.T) {
	broken := errors.New("disk full")
	for _, where := range []string{"judged", "done"} {
		called := 0
		e := &Executor{Tools: counted(t, &called, 0), State: new(State).Scope("")}
		if where == "judged" {
			e.Judged = func(_ context.Context, a *Action, _ *policy.Verdict) error {
				if a.Type == ToolCall {
					return broken
				}
				return nil
			}
		} else {
			e.Done = func(context.Context, *Outcome) error { return broken }
		}
		r, err := e.Run(t.Context(), mustParse(t, `{"actions":[{"id":"w","type":"state_write","parameters":{"key":"k","value":1}},
			{"id":"a","type":"tool_call","tool":"t"},{"id":"b","type":"tool_call","tool":"t","state_dependencies":["a"]}]}`))
		if !errors.Is(err, broken) || r != nil || e.State.Exists("k") {
			t.Errorf("%s: %v, %v", where, r, err)
		}
		if wantCalls := map[string]int{"judged": 0, "done": 1}[where]; called != wantCalls {
			t.Errorf("%s: called %d times", where, called)
		}
	}
}

func TestAResultOnTheWire(t *testing.T) {
	e := &Executor{Now: func() time.Time { return time.Date(2026, 5, 2, 12, 0, 1, 5e6, time.FixedZone("", 3600)) }}
	r := runs(t, e, `{"id":"p1","actions":[{"id":"a","type":"state_write","parameters":{"key":"k","value":[1]}}]}`)
	r.Results[0].DurationMS, r.Cost.TotalDurationMS = 12.5, 13
	b, err := json.Marshal(r)
	const want = `{"proposal_id":"p1","results":[{"action_id":"a","status":"succeeded","output":[1],"error":null,` +
		`"state_changes":{"k":{"op":"set","value":[1]}},"duration_ms":12.5,"timestamp":"2026-05-02T11:00:01.005Z"}],` +
		`"cost":{"tool_calls":0,"actions_executed":1,"actions_rejected":0,"actions_skipped":0,"total_duration_ms":13,"retries":0}}`
	if err != nil || string(b) != want {
		t.Errorf("%v\n got %s\nwant %s", err, b, want)
	}
	r = runs(t, e, `{"actions":[]}`)
	b, err = json.Marshal(r.Results)
	if err != nil || string(b) != "[]" || len(r.ProposalID) != 12 || strings.Trim(r.ProposalID, "0123456789abcdef") != "" {
		t.Errorf("%s, %v, id %q", b, err, r.ProposalID)
	}
}
