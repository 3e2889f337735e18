package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// A table holds tools of tests.
type table map[string]*Tool

func (t table) Tool(name string) (*Tool, bool) {
	tool, ok := t[name]
	return tool, ok
}

// tools makes tools without a schema of functions.
func tools(t *testing.T, fns map[string]func(context.Context, *Call) (json.RawMessage, error)) table {
	t.Helper()
	out := make(table)
	for name, fn := range fns {
		out[name] = &Tool{Definition: Definition{Name: name}, Call: fn}
	}
	return out
}

func echo(_ context.Context, c *Call) (json.RawMessage, error) { return c.Parameters, nil }

func fail(context.Context, *Call) (json.RawMessage, error) { return nil, errors.New("it broke") }

func mustParse(t *testing.T, text string) *Proposal {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runs runs a proposal and returns its result without what depends on the clock.
func runs(t *testing.T, e *Executor, text string) *Result {
	t.Helper()
	r, err := e.Run(t.Context(), mustParse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// summary is each action's status, and what else is told of it in short.
func summary(r *Result) []string {
	var out []string
	for _, a := range r.Results {
		s := a.ActionID + " " + a.Status
		if a.Error != nil {
			s += ": " + *a.Error
		}
		if a.Output != nil {
			s += " = " + string(a.Output)
		}
		if a.RolledBack {
			s += " (rolled back)"
		}
		out = append(out, s)
	}
	return out
}

func want(t *testing.T, r *Result, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, summary(r)); diff != "" {
		t.Errorf("results (- want, + got):\n%s", diff)
	}
}

func compiled(t *testing.T, rules ...policy.Rule) *policy.Set {
	t.Helper()
	s, err := policy.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAToolIsCalled(t *testing.T) {
	var turns, verdicts []string
	called := 0
	e := &Executor{
		Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"shell": func(ctx context.Context, c *Call) (json.RawMessage, error) {
			called++
			return echo(ctx, c)
		}}),
		Policies: compiled(t, policy.Rule{Name: "no_rm", Rule: policy.DenyToolParam, Target: "shell", Key: "command", Pattern: "rm -rf"}),
		Judged: func(_ context.Context, a *Action, v *policy.Verdict) error {
			verdicts = append(verdicts, a.ID+string(v.AppendJSON(nil)))
			return nil
		},
		Done: func(_ context.Context, o *Outcome) error {
			turns = append(turns, o.Action.ID+" "+o.Result.Status+" "+string(o.Parameters))
			return nil
		},
	}
	r := runs(t, e, `{"id":"p","actions":[
		{"id":"a","type":"tool_call","tool":"shell","parameters":{"command":"ls"}},
		{"id":"b","type":"tool_call","tool":"shell","parameters":{"command":"sudo rm -rf /"},"failure_behavior":"skip"},
		{"id":"c","type":"tool_call","tool":"none","failure_behavior":"skip"},
		{"id":"d","type":"tool_call","failure_behavior":"skip"}]}`)
	want(t, r, `a succeeded = {"command":"ls"}`,
		`b rejected: policy 'no_rm': param 'command' matches 'rm -rf'`,
		`c rejected: tool 'none' is not registered`,
		`d rejected: tool_call action has no tool specified`)
	if called != 1 {
		t.Errorf("the tool was called %d times", called)
	}
	if diff := cmp.Diff([]string{`a succeeded {"command":"ls"}`, `b rejected {"command":"sudo rm -rf /"}`, `c rejected {}`, `d rejected {}`}, turns); diff != "" {
		t.Error(diff)
	}
	if len(verdicts) != 2 || verdicts[0] != `a{"kind":"allow"}` || !strings.Contains(verdicts[1], `"param":"command"`) {
		t.Error(verdicts)
	}
	r.Cost.TotalDurationMS = 0
	if diff := cmp.Diff(Cost{ToolCalls: 1, ActionsExecuted: 1, ActionsRejected: 3}, r.Cost); diff != "" {
		t.Error(diff)
	}
}

func TestATimeoutFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Executor{Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"slow": func(ctx context.Context, _ *Call) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})}
		timedOut := false
		e.Done = func(_ context.Context, o *Outcome) error {
			timedOut = o.TimedOut
			return nil
		}
		began := time.Now()
		r := runs(t, e, `{"actions":[{"id":"a","type":"tool_call","tool":"slow","timeout_ms":1500}]}`)
		want(t, r, `a failed: tool 'slow' timed out (1500 ms)`)
		if !timedOut || time.Since(began) != 1500*time.Millisecond || r.Results[0].DurationMS != 1500 {
			t.Errorf("timed out %v after %v, %v ms", timedOut, time.Since(began), r.Results[0].DurationMS)
		}
	})
}

// onlyA lets nothing pass but a parameter "a".
type onlyA struct{}

func (onlyA) Problem(tool string, parameters *policy.Parameters) string {
	if _, ok := parameters.Map()["a"]; !ok {
		return "tool '" + tool + "' wants a"
	}
	return ""
}

func TestAViolatingCallIsRejected(t *testing.T) {
	calls := 0
	tool := &Tool{Schema: onlyA{}, Call: func(_ context.Context, c *Call) (json.RawMessage, error) {
		calls++
		return c.Parameters, nil
	}}
	r := runs(t, &Executor{Tools: table{"t": tool}}, `{"actions":[
		{"id":"a","type":"tool_call","tool":"t","parameters":{"n":"1"},"failure_behavior":"skip"},
		{"id":"b","type":"tool_call","tool":"t","parameters":{"a":1}}]}`)
	want(t, r, "a rejected: tool 't' wants a", `b succeeded = {"a":1}`)
	if calls != 1 {
		t.Errorf("its body ran %d times, want once", calls)
	}
}
