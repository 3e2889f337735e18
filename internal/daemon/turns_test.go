package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// TestTurnsOfToolCalls holds each convention of the spec's table to the bytes on record.
func TestTurnsOfToolCalls(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	cases := []struct {
		name, tool, params, output string
		want                       string // behind "index":0,
	}{
		{"drive_cli exited", "drive_cli", `{"prompt":"fix  it\n"}`, `{"exit_code":3,"stdout":"s"}`,
			`"prompt":"fix  it\n","tool":"drive_cli","parameters":{"prompt":"fix  it\n"},"output":{"exit_code":3,"stdout":"s"},` +
				`"cli_outcome":{"outcome":"exited","code":3},"verifier_verdict":"not_run"`},
		{"drive_cli code", "drive_cli", `{}`, `{"code":0}`,
			`"tool":"drive_cli","parameters":{},"output":{"code":0},"cli_outcome":{"outcome":"exited","code":0},"verifier_verdict":"not_run"`},
		{"drive_cli timeout", "drive_cli", `{"prompt":"p"}`, `{"timed_out":true,"exit_code":-1}`,
			`"prompt":"p","tool":"drive_cli","parameters":{"prompt":"p"},"output":{"timed_out":true,"exit_code":-1},` +
				`"cli_outcome":{"outcome":"timeout"},"verifier_verdict":"not_run"`},
		{"drive_cli not timed out", "drive_cli", `{"prompt":null}`, `{"exit_code":0,"timed_out":false}`,
			`"tool":"drive_cli","parameters":{"prompt":null},"output":{"exit_code":0,"timed_out":false},` +
				`"cli_outcome":{"outcome":"exited","code":0},"verifier_verdict":"not_run"`},
		{"check_outcome pass", "check_outcome", `{}`, `{"passed":true}`,
			`"tool":"check_outcome","parameters":{},"output":{"passed":true},"verifier_verdict":"pass"`},
		{"check_outcome fail", "check_outcome", `{}`, `{"passed":false,"exit_code":1}`,
			`"tool":"check_outcome","parameters":{},"output":{"passed":false,"exit_code":1},"verifier_verdict":"fail"`},
		{"check_outcome says nothing", "check_outcome", `{}`, `{"passed":"true"}`,
			`"tool":"check_outcome","parameters":{},"output":{"passed":"true"},"verifier_verdict":"not_run"`},
		{"generic", "shell", `{"prompt":"p","n":12345678901234567890}`, `{"passed":true,"exit_code":1,"timed_out":true}`,
			`"tool":"shell","parameters":{"prompt":"p","n":12345678901234567890},"output":{"passed":true,"exit_code":1,"timed_out":true},"verifier_verdict":"not_run"`},
		{"output of any kind", "shell", `{}`, `"text"`, `"tool":"shell","parameters":{},"output":"text","verifier_verdict":"not_run"`},
		{"output null", "shell", `{}`, `null`, `"tool":"shell","parameters":{},"output":null,"verifier_verdict":"not_run"`},
		{"long", "shell", `{}`, `"` + long + `"`,
			`"tool":"shell","parameters":{},"output":"` + long[:16<<10] + `…[truncated]","verifier_verdict":"not_run"`},
	}
	r := start(t, nil)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := r.as("a")
			p.answers(c.tool, c.output)
			run := p.startRun(rpcapi.RunsStartParams{})
			if out := p.call(c.tool, c.params); out.Results[0].Status != proposal.Succeeded || string(out.Results[0].Output) != c.output {
				t.Fatalf("result: %+v", out.Results[0])
			}
			got := turns(t, p.trace(run.RunID))
			if want := `{"record":"turn","index":0,` + c.want + `}`; len(got) != 1 || got[0] != want {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		})
	}
}

func TestATurnOfARejectedCallSaysWhichPolicy(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.serve("drive_cli", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) {
		t.Error("the body ran")
		return 1, nil
	})
	p.must(rpcapi.PolicyRegister, json.RawMessage(`{"name":"no_rm","rule":"deny_tool_param","target":"drive_cli","key":"prompt","pattern":"rm -rf"}`), nil)
	run := p.startRun(rpcapi.RunsStartParams{})
	out := p.call("drive_cli", `{"prompt":"rm -rf /"}`)
	if out.Results[0].Status != proposal.Rejected || out.Cost.ActionsRejected != 1 || out.Cost.ToolCalls != 0 {
		t.Fatalf("result: %+v", out)
	}
	got := turns(t, p.trace(run.RunID))
	want := `{"record":"turn","index":0,"prompt":"rm -rf /","tool":"drive_cli","parameters":{"prompt":"rm -rf /"},"verifier_verdict":"not_run",` +
		`"policy_rejected":{"rule":"no_rm","param":"prompt","reason":"param 'prompt' matches 'rm -rf'"}}`
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	p.must(rpcapi.PolicyRegister, json.RawMessage(`{"name":"never","rule":"deny_tool","target":"drive_cli"}`), nil)
	p.call("drive_cli", `{"prompt":"rm -rf /"}`)
	got = turns(t, p.trace(run.RunID))
	if len(got) != 2 || !strings.Contains(got[1], `"rule":"no_rm, never"`) {
		t.Fatalf("every policy is named: %s", got)
	}
	var verdicts rpcapi.RunsVerdictsResult
	p.must(rpcapi.RunsVerdicts, rpcapi.RunParams{RunID: run.RunID}, &verdicts)
	if len(verdicts.Verdicts) != 2 || verdicts.Verdicts[1].Verdict.Kind != "deny" || len(verdicts.Verdicts[1].Verdict.Violations) != 2 ||
		verdicts.Verdicts[0].PolicySet == verdicts.Verdicts[1].PolicySet || len(verdicts.Verdicts[0].ParamsDigest) < 64 {
		t.Fatalf("verdicts: %+v", verdicts)
	}
}

func TestAToolThatFailsIsAResult(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.serve("shell", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) {
		return nil, errors.New("no shell today")
	})
	run := p.startRun(rpcapi.RunsStartParams{})
	out := p.call("shell", `{}`)
	if out.Results[0].Status != proposal.Failed || out.Results[0].Error == nil || !strings.Contains(*out.Results[0].Error, "no shell today") {
		t.Fatalf("result: %+v", out.Results[0])
	}
	got := turns(t, p.trace(run.RunID))
	if want := `{"record":"turn","index":0,"tool":"shell","parameters":{},"error":"no shell today","verifier_verdict":"not_run"}`; len(got) != 1 || got[0] != want {
		t.Fatalf("got %s", got)
	}
}

func TestAToolThatFailsWithoutAWordIsSaidToHaveFailed(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.serve("shell", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) { return nil, errors.New("") })
	run := p.startRun(rpcapi.RunsStartParams{})
	out := p.call("shell", `{}`)
	if out.Results[0].Status != proposal.Failed || out.Results[0].Error == nil {
		t.Fatalf("result: %+v", out.Results[0])
	}
	if got := turns(t, p.trace(run.RunID)); !strings.Contains(got[0], `"error":"tool 'shell' failed with code -32603, and did not say why"`) {
		t.Fatalf("got %s", got)
	}
}

func TestATurnOfACallThatNeverRanSaysWhy(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{})
	p.call("nobody", `{"p":1}`)
	got := turns(t, p.trace(run.RunID))
	want := `{"record":"turn","index":0,"tool":"nobody","parameters":{"p":1},"error":"tool 'nobody' is not registered","verifier_verdict":"not_run"}`
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAToolPastItsDeadlineIsCancelled(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	release := make(chan struct{})
	defer close(release)
	calls := make(chan rpcapi.ToolsExecuteParams, 1)
	p.serve("drive_cli", func(_ context.Context, x *rpcapi.ToolsExecuteParams) (any, error) {
		calls <- *x
		<-release
		return 1, nil
	})
	run := p.startRun(rpcapi.RunsStartParams{})
	out := p.submit(`{"proposal":{"actions":[{"id":"a1","type":"tool_call","tool":"drive_cli","parameters":{"prompt":"p"},"timeout_ms":40}]}}`)
	if out.Results[0].Status != proposal.Failed || !strings.Contains(*out.Results[0].Error, "timed out") {
		t.Fatalf("result: %+v %s", out.Results[0], *out.Results[0].Error)
	}
	n, called := p.next(), <-calls
	var cancel rpcapi.ToolsCancelParams
	if err := json.Unmarshal(n.Params, &cancel); err != nil || n.Method != rpcapi.ToolsCancel {
		t.Fatalf("%s %s", n.Method, n.Params)
	}
	if cancel.RequestID != called.RequestID || cancel.ActionID != "a1" || !strings.Contains(cancel.Reason, "timed out") {
		t.Fatalf("cancel %+v of %+v", cancel, called)
	}
	if called.Attempt != 1 || called.TimeoutMS == nil || *called.TimeoutMS != 40 || string(called.Params) != string(called.Parameters) {
		t.Fatalf("called: %+v", called)
	}
	got := turns(t, p.trace(run.RunID))
	if want := `{"record":"turn","index":0,"prompt":"p","tool":"drive_cli","parameters":{"prompt":"p"},"error":"tool 'drive_cli' timed out (40 ms)","cli_outcome":{"outcome":"timeout"},"verifier_verdict":"not_run"}`; len(got) != 1 || got[0] != want {
		t.Fatalf("got %s", got)
	}
}

// TestManyCallbacksAtOnce lets a client answer many calls in the opposite order, while its own requests are in flight.
func TestManyCallbacksAtOnce(t *testing.T) {
	const n = 40
	r := start(t, nil)
	p := r.as("a")
	var mu sync.Mutex
	waiting := []chan struct{}{}
	p.serve("echo", func(_ context.Context, x *rpcapi.ToolsExecuteParams) (any, error) {
		mine := make(chan struct{})
		mu.Lock()
		waiting = append(waiting, mine)
		if len(waiting) == n { // all are here: the last one goes first
			close(waiting[n-1])
		}
		mu.Unlock()
		<-mine
		mu.Lock()
		for i := n - 1; i > 0; i-- {
			if waiting[i] == mine {
				close(waiting[i-1])
			}
		}
		mu.Unlock()
		return x.Parameters, nil
	})
	run := p.startRun(rpcapi.RunsStartParams{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			out := p.call("echo", fmt.Sprintf(`{"i":%d}`, i))
			if string(out.Results[0].Output) != fmt.Sprintf(`{"i":%d}`, i) {
				t.Errorf("%d got %s", i, out.Results[0].Output)
			}
		})
	}
	all.Wait()
	for i, turn := range turns(t, p.trace(run.RunID)) {
		if !strings.Contains(turn, fmt.Sprintf(`"index":%d,`, i)) {
			t.Errorf("turn %d: %s", i, turn)
		}
	}
	if got := len(turns(t, p.trace(run.RunID))); got != n {
		t.Fatalf("%d turns", got)
	}
}

// TestToolsSubmitProposals lets the bodies of more calls than are served at a time submit proposals of their own.
func TestToolsSubmitProposals(t *testing.T) {
	const n = 100
	r := start(t, &daemon.Options{Limits: daemon.Limits{Rate: -1}})
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	p.answers("inner", `1`)
	var here sync.WaitGroup
	here.Add(n)
	p.serve("outer", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) {
		here.Done()
		here.Wait() // until all are in service
		out, err := p.try(rpcapi.ProposalSubmit, json.RawMessage(`{"proposal":{"actions":[{"type":"tool_call","tool":"inner"}]}}`))
		return out, err
	})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if out := p.call("outer", `{}`); out.Results[0].Status != proposal.Succeeded {
				t.Errorf("%+v", out.Results[0])
			}
		})
	}
	all.Wait()
	if got := len(turns(t, p.trace(run))); got != 2*n {
		t.Errorf("%d turns", got)
	}
}

func TestToolsHaveSchemas(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.answers("other", `1`)
	var n int
	p.must(rpcapi.ToolsRegister, json.RawMessage(
		`[{"name":"count","description":"d","parameters":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}},{"name":"b","parameters":null}]`), &n)
	if n != 2 {
		t.Fatalf("registered %d", n)
	}
	var list rpcapi.ToolsListResult
	p.must(rpcapi.ToolsList, nil, &list)
	if list.Count != 3 || list.Tools[0].Name != "b" || list.Tools[1].Name != "count" || list.Tools[2].Name != "other" {
		t.Fatalf("%+v", list)
	}
	run := p.startRun(rpcapi.RunsStartParams{})
	for _, params := range []string{`{}`, `{"n":"1"}`} {
		if out := p.call("count", params); out.Results[0].Status != proposal.Rejected {
			t.Errorf("%s: %+v", params, out.Results[0])
		}
	}
	if out := p.call("none", `{}`); out.Results[0].Status != proposal.Rejected || !strings.Contains(*out.Results[0].Error, "not registered") {
		t.Errorf("%+v", out.Results[0])
	}
	var gone rpcapi.ToolsUnregisterResult
	p.must(rpcapi.ToolsUnregister, json.RawMessage(`{"name":"other"}`), &gone)
	if gone.Removed != 1 || gone.Unregistered != "other" {
		t.Errorf("%+v", gone)
	}
	p.must(rpcapi.ToolsUnregister, json.RawMessage(`{"name":"other"}`), &gone)
	if gone.Removed != 0 {
		t.Errorf("%+v", gone)
	}
	if out := p.call("other", `{}`); out.Results[0].Status != proposal.Rejected {
		t.Errorf("%+v", out.Results[0])
	}
	if got := turns(t, p.trace(run.RunID)); len(got) != 4 {
		t.Errorf("turns: %s", strings.Join(got, "\n"))
	}
	p.refused(rpcapi.CodeInvalidParams, rpcapi.ToolsRegister, json.RawMessage(`{"name":"x"}`))
	p.refused(rpcapi.CodeInvalidParams, rpcapi.ToolsRegister, json.RawMessage(`[{"description":"nameless"}]`))
}
