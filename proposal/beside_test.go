package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// A stage is a tool t that takes as many ms as parameters.ms says, fails where parameters.fail is true, and notes when it was
// called and when its end was told.
type stage struct {
	mu                     sync.Mutex
	began                  time.Time
	calls, verdicts, turns []string
}

func (s *stage) executor(t *testing.T) *Executor {
	s.began = time.Now()
	return &Executor{
		State: new(State).Scope(""),
		Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){"t": s.call}),
		Judged: func(_ context.Context, a *Action, _ *policy.Verdict) error {
			s.verdicts = append(s.verdicts, a.ID)
			return nil
		},
		Done: func(_ context.Context, o *Outcome) error {
			s.turns = append(s.turns, o.Action.ID+" "+o.Result.Status)
			return nil
		},
	}
}

func (s *stage) call(ctx context.Context, c *Call) (json.RawMessage, error) {
	var p struct {
		MS   int
		Fail bool
	}
	if err := json.Unmarshal(c.Parameters, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.calls = append(s.calls, c.ActionID+" "+time.Since(s.began).String())
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(p.MS) * time.Millisecond):
	}
	if p.Fail {
		return nil, errors.New("it broke")
	}
	return json.RawMessage("1"), nil
}

func timed(id, parameters string, more ...string) string {
	return strings.Join(append([]string{`{"id":"` + id + `","type":"tool_call","tool":"t","parameters":{` + parameters + `}`}, more...), ",") + "}"
}

func TestWhatIsIndependentRunsAtOnce(t *testing.T) {
	const skip, retry, gone = `"failure_behavior":"skip"`, `"failure_behavior":"retry"`, ": skipped: an action before it was not done, and the proposal was aborted"
	for _, tt := range []struct {
		name    string
		actions []string
		calls   string // as they begin
		turns   string
		took    time.Duration
		want    []string
	}{
		{"abort", []string{timed("a", `"ms":400`), timed("b", `"ms":400`), timed("c", `"ms":400`)},
			"a 0s,b 0s,c 0s", "a succeeded,b succeeded,c succeeded", 400, []string{"a succeeded = 1", "b succeeded = 1", "c succeeded = 1"}},
		{"skip, retry", []string{timed("a", `"ms":400`, skip), timed("b", `"ms":300`, retry)},
			"a 0s,b 0s", "a succeeded,b succeeded", 400, []string{"a succeeded = 1", "b succeeded = 1"}},
		{"the last ends first", []string{timed("a", `"ms":300`), timed("b", `"ms":200,"fail":true`, skip), timed("c", `"ms":100`)},
			"a 0s,b 0s,c 0s", "a succeeded,b failed,c succeeded", 300, []string{"a succeeded = 1", "b failed: it broke", "c succeeded = 1"}},
		{"a diamond", []string{timed("d", `"ms":1`, `"state_dependencies":["b","c"]`), timed("a", `"ms":10`, `"expected_effects":{"x":1}`),
			timed("b", `"ms":30`, `"state_dependencies":["x"]`), timed("c", `"ms":20`, `"state_dependencies":["x"]`)},
			"a 0s,b 10ms,c 10ms,d 40ms", "a succeeded,b succeeded,c succeeded,d succeeded", 41,
			[]string{"d succeeded = 1", "a succeeded = 1", "b succeeded = 1", "c succeeded = 1"}},
		{"past one that waits", []string{timed("a", `"ms":50`, `"expected_effects":{"x":1}`), timed("b", `"ms":1`, `"state_dependencies":["x"]`), timed("c", `"ms":9`)},
			"a 0s,b 50ms,c 0s", "a succeeded,b succeeded,c succeeded", 51, []string{"a succeeded = 1", "b succeeded = 1", "c succeeded = 1"}},
		{"a precondition on what one before it writes", []string{timed("a", `"ms":50`, `"expected_effects":{"x":1}`),
			timed("b", `"ms":1`, `"preconditions":[{"key":"x","value":1}]`), timed("c", `"ms":1`, `"expected_effects":{"x":2}`)},
			"a 0s,b 50ms,c 51ms", "a succeeded,b succeeded,c succeeded", 52, []string{"a succeeded = 1", "b succeeded = 1", "c succeeded = 1"}},
		{"a read and an assertion", []string{timed("a", `"ms":50`, `"expected_effects":{"x":1}`), `{"id":"r","type":"state_read","parameters":{"key":"x"}}`,
			timed("b", `"ms":20`), `{"id":"s","type":"assertion","parameters":{"key":"x","value":2}}`, timed("c", "")},
			"a 0s,b 0s", "a succeeded,b succeeded", 50, []string{"a succeeded = 1 (rolled back)", "r succeeded = 1 (rolled back)", "b succeeded = 1 (rolled back)",
				"s failed: assertion failed: state['x'] eq 2 does not hold", "c skipped" + gone}},
		{"abort ends what has not begun, and no more", []string{timed("a", `"ms":50`, `"expected_effects":{"x":1}`), timed("b", `"ms":10,"fail":true`),
			timed("c", "", `"state_dependencies":["a"]`), timed("d", `"ms":30`)},
			"a 0s,b 0s,d 0s", "a succeeded,b failed,d succeeded", 50,
			[]string{"a succeeded = 1 (rolled back)", "b failed: it broke", "c skipped" + gone, "d succeeded = 1 (rolled back)"}},
		{"abort ends the wait for another attempt", []string{timed("a", `"ms":10,"fail":true`, retry), timed("b", `"ms":50,"fail":true`)},
			"a 0s,b 0s", "a failed,b failed", 50, []string{"a failed: it broke", "b failed: it broke"}},
		{"each has its attempts", []string{timed("a", `"ms":10,"fail":true`, skip, `"idempotent":true`, `"max_retries":1`), timed("b", `"ms":20,"fail":true`, skip, `"idempotent":true`, `"max_retries":1`)},
			"a 0s,a 110ms,b 0s,b 120ms", "a failed,b failed", 140, []string{"a failed: it broke", "b failed: it broke"}},
		{"what is refused at once ends those behind it", []string{timed("a", `"ms":50`), `{"id":"b","type":"tool_call","tool":"none"}`, timed("c", "")},
			"a 0s", "a succeeded,b rejected", 50, []string{"a succeeded = 1 (rolled back)", "b rejected: tool 'none' is not registered", "c skipped" + gone}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s stage
				e := s.executor(t)
				want(t, runs(t, e, `{"actions":[`+strings.Join(tt.actions, ",")+`]}`), tt.want...)
				if took := time.Since(s.began); took != tt.took*time.Millisecond {
					t.Errorf("it took %v, want %d ms", took, tt.took)
				}
				slices.Sort(s.calls) // two of one moment come as they like
				if diff := cmp.Diff([]string{tt.calls, tt.turns}, []string{strings.Join(s.calls, ","), strings.Join(s.turns, ",")}); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A client whose second tool lets the first go on is not stuck.
func TestOneToolMayWaitForAnother(t *testing.T) {
	second := make(chan struct{})
	e := &Executor{Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){
		"first": func(ctx context.Context, _ *Call) (json.RawMessage, error) {
			select {
			case <-second:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		"second": func(context.Context, *Call) (json.RawMessage, error) {
			close(second)
			return nil, nil
		},
	})}
	want(t, runs(t, e, `{"actions":[{"id":"a","type":"tool_call","tool":"first","timeout_ms":60000},{"id":"b","type":"tool_call","tool":"second"}]}`),
		"a succeeded", "b succeeded")
}

// A hook that fails ends the tools that run, and is told nothing more.
func TestAHookEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		e := s.executor(t)
		broken, told := errors.New("disk full"), 0
		e.Done = func(context.Context, *Outcome) error { told++; return broken }
		_, err := e.Run(t.Context(), mustParse(t, `{"actions":[`+timed("a", `"ms":10`)+","+timed("b", `"ms":60000`)+`]}`))
		if took := time.Since(s.began); !errors.Is(err, broken) || told != 1 || took != 10*time.Millisecond {
			t.Errorf("%v after %v, told %d ends", err, took, told)
		}
	})
}

func TestOnlySoManyToolsRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stage
		e := s.executor(t)
		actions := make([]string, MaxRunning+1)
		for i := range actions {
			actions[i] = timed(fmt.Sprint(i), `"ms":10`)
		}
		r := runs(t, e, `{"actions":[`+strings.Join(actions, ",")+`]}`)
		if took := time.Since(s.began); took != 20*time.Millisecond || r.Cost.ToolCalls != len(actions) {
			t.Errorf("it took %v, %d calls", took, r.Cost.ToolCalls)
		}
	})
}

// A tool that panics ends the proposal where its caller can catch it, once the others have ended.
func TestAPanicOfAToolReachesTheCaller(t *testing.T) {
	e := &Executor{Tools: tools(t, map[string]func(context.Context, *Call) (json.RawMessage, error){
		"bad":  func(context.Context, *Call) (json.RawMessage, error) { panic("a bug") },
		"slow": func(ctx context.Context, _ *Call) (json.RawMessage, error) { <-ctx.Done(); return nil, ctx.Err() },
	})}
	defer func() {
		if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "a bug\n") {
			t.Errorf("got %s", p)
		}
	}()
	_, err := e.Run(t.Context(), mustParse(t, `{"actions":[{"type":"tool_call","tool":"slow"},{"type":"tool_call","tool":"bad"}]}`))
	t.Errorf("it returned %v", err)
}
