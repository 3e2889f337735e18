package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// TestAStopFinishesWhatIsInService stops a daemon while a tool of a client runs: the tool's reply is taken, its turn recorded,
// the proposal answered, and only then the connection ends.
func TestAStopFinishesWhatIsInService(t *testing.T) {
	data := t.TempDir()
	r := start(t, &daemon.Options{Data: data})
	p := r.as("a")
	running, release := make(chan struct{}), make(chan struct{})
	p.serve("slow", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) {
		close(running)
		<-release
		return "done", nil
	})
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	answered := make(chan rpcapi.ProposalSubmitResult, 1)
	go func() { answered <- p.call("slow", `{}`) }()
	<-running
	stopped := make(chan error, 1)
	go func() { stopped <- r.Shutdown(context.Background()) }()
	for { // until it drains
		if _, err := p.try(rpcapi.RunsList, nil); err != nil {
			break
		}
	}
	close(release)
	if out := <-answered; out.Results[0].Status != proposal.Succeeded || string(out.Results[0].Output) != `"done"` {
		t.Fatalf("%+v", out)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	p = start(t, &daemon.Options{Data: data}).as("a")
	tr := p.trace(run)
	if got := turns(t, tr); len(got) != 1 || !strings.Contains(got[0], `"output":"done"`) {
		t.Fatalf("%s", tr.Records)
	}
	if last := string(tr.Records[len(tr.Records)-1]); !strings.Contains(last, `"incomplete"`) {
		t.Fatalf("%s", last)
	}
}

// TestAStopDoesNotWaitForEver stops one whose client never answers.
func TestAStopDoesNotWaitForEver(t *testing.T) {
	r := start(t, &daemon.Options{Drain: 50 * 1e6})
	p := r.as("a")
	running, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	p.serve("stuck", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) {
		close(running)
		<-release
		return nil, nil
	})
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	go func() {
		_, _ = p.try(rpcapi.ProposalSubmit, json.RawMessage(`{"proposal":{"actions":[{"type":"tool_call","tool":"stuck"}]}}`))
	}()
	<-running
	if err := r.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	_ = run
}

func TestPages(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	p.record(run, 3)
	p.refused(rpcapi.CodeMethodNotFound, "no.such\nmethod", nil)
	base := strings.Replace(r.URL(), "ws://", "http://", 1)
	get := func(path string) (int, string) {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b strings.Builder
		if err := resp.Write(&b); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String()
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, body := get("/metrics")
	for _, want := range []string{
		`tapedeck_daemon_requests_total{code="ok",method="runs.record_turns"} 1`, `tapedeck_daemon_turns_total 3`,
		`tapedeck_daemon_requests_total{code="-32601",method="other"} 1`, `tapedeck_daemon_connections 1`, `tapedeck_daemon_runs_open 1`,
		`tapedeck_daemon_ready 1`, `tapedeck_store_turns_total 3`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestLimits(t *testing.T) {
	r := start(t, &daemon.Options{Limits: daemon.Limits{Tools: 2, Policies: 2, Scopes: 1, Subscriptions: 1, Runs: 2}})
	p := r.as("a")
	p.must(rpcapi.ToolsRegister, json.RawMessage(`[{"name":"a"},{"name":"b"}]`), nil)
	p.must(rpcapi.ToolsRegister, json.RawMessage(`[{"name":"a"},{"name":"b"}]`), nil)
	p.refused(rpcapi.CodeInvalidParams, rpcapi.ToolsRegister, json.RawMessage(`[{"name":"c"}]`))
	var scope rpcapi.SessionPolicyOpenResult
	p.must(rpcapi.SessionPolicyOpen, json.RawMessage(`{}`), &scope)
	p.refused(rpcapi.CodeInternal, rpcapi.SessionPolicyOpen, json.RawMessage(`{}`))
	p.must(rpcapi.PolicyRegister, json.RawMessage(`{"name":"x","rule":"deny_tool","target":"q"}`), nil)
	p.must(rpcapi.PolicyRegister, json.RawMessage(`{"name":"x","rule":"deny_tool","target":"q","session_id":"`+scope.SessionID+`"}`), nil)
	p.refused(rpcapi.CodeInvalidParams, rpcapi.PolicyRegister, json.RawMessage(`{"name":"y","rule":"deny_tool","target":"q"}`))
	p.must(rpcapi.SessionPolicyClose, json.RawMessage(`{"session_id":"`+scope.SessionID+`"}`), nil)
	p.must(rpcapi.PolicyRegister, json.RawMessage(`{"name":"y","rule":"deny_tool","target":"q"}`), nil)
	one, two := p.startRun(rpcapi.RunsStartParams{}).RunID, p.startRun(rpcapi.RunsStartParams{}).RunID
	p.refused(rpcapi.CodeInternal, rpcapi.RunsStart, rpcapi.RunsStartParams{})
	p.subscribe(one)
	p.refused(rpcapi.CodeInternal, rpcapi.RunsSubscribe, rpcapi.RunParams{RunID: two})
	p.subscribe(one)
	p.must(rpcapi.RunsUnsubscribe, rpcapi.RunParams{RunID: one}, nil)
	p.subscribe(two)
	p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+one+`","outcome":{"status":"done"}}`), nil)
	p.startRun(rpcapi.RunsStartParams{IdempotencyKey: one}) // which has ended, and is none that is open
	p.startRun(rpcapi.RunsStartParams{})
	p.refused(rpcapi.CodeInternal, rpcapi.RunsStart, rpcapi.RunsStartParams{})
}

func TestPoliciesOfAScope(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.answers("t", `1`)
	var scope rpcapi.SessionPolicyOpenResult
	p.must(rpcapi.SessionPolicyOpen, json.RawMessage(`{}`), &scope)
	raw, err := p.try(rpcapi.PolicyRegister, json.RawMessage(`{"name":"no","rule":"deny_tool","target":"t","session_id":"`+scope.SessionID+`"}`))
	if want := `{"name":"no","registered":"no","scope":{"session_id":"` + scope.SessionID + `"}}`; err != nil || string(raw) != want {
		t.Fatalf("%s %v", raw, err)
	}
	raw, _ = p.try(rpcapi.PolicyRegister, json.RawMessage(`{"name":"other","rule":"deny_tool","target":"x"}`))
	if want := `{"name":"other","registered":"other","scope":"global"}`; string(raw) != want {
		t.Fatalf("%s", raw)
	}
	submit := func(session string) string {
		return p.submit(`{"session_id":"` + session + `","proposal":{"actions":[{"type":"tool_call","tool":"t"}]}}`).Results[0].Status
	}
	if got := submit(""); got != proposal.Succeeded {
		t.Errorf("without the scope: %s", got)
	}
	if got := submit(scope.SessionID); got != proposal.Rejected {
		t.Errorf("in the scope: %s", got)
	}
	if got := submit("pol-none"); got != proposal.Rejected {
		t.Errorf("in one that is not open: %s", got)
	}
	raw, _ = p.try(rpcapi.PolicyList, json.RawMessage(`{"session_id":"`+scope.SessionID+`"}`))
	if want := `{"policies":[{"name":"no","description":"deny tool \"t\""}],"scope":{"session_id":"` + scope.SessionID + `"}}`; string(raw) != want {
		t.Errorf("%s", raw)
	}
	raw, _ = p.try(rpcapi.PolicyUnregister, json.RawMessage(`{"name":"no","session_id":"`+scope.SessionID+`"}`))
	if want := `{"unregistered":"no","removed":1,"scope":{"session_id":"` + scope.SessionID + `"}}`; string(raw) != want {
		t.Errorf("%s", raw)
	}
	if got := submit(scope.SessionID); got != proposal.Succeeded {
		t.Errorf("in the scope without its policy: %s", got)
	}
	for _, want := range []string{`{"closed":true}`, `{"closed":false}`} {
		if raw, _ = p.try(rpcapi.SessionPolicyClose, json.RawMessage(`{"session_id":"`+scope.SessionID+`"}`)); string(raw) != want {
			t.Errorf("%s", raw)
		}
	}
	p.refused(rpcapi.CodeInternal, rpcapi.PolicyList, json.RawMessage(`{"session_id":"`+scope.SessionID+`"}`))
	for _, rule := range []string{`{}`, `{"name":"x","rule":"nope"}`, `{"name":"x","rule":"deny_tool"}`, `{"rule":"deny_tool","target":"t"}`} {
		p.refused(rpcapi.CodeInvalidParams, rpcapi.PolicyRegister, json.RawMessage(rule))
	}
}

func TestSessionInitIsAllOrNothing(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	p.refused(rpcapi.CodeInvalidParams, rpcapi.SessionInit, json.RawMessage(
		`{"tools":[{"name":"t"}],"policies":[{"name":"a","rule":"deny_tool","target":"t"},{"name":"b","rule":"nope"}]}`))
	if raw, _ := p.try(rpcapi.PolicyList, nil); string(raw) != `{"policies":[],"scope":"global"}` {
		t.Errorf("%s", raw)
	}
	if raw, _ := p.try(rpcapi.ToolsList, nil); string(raw) != `{"tools":[],"count":0}` {
		t.Errorf("%s", raw)
	}
	var out rpcapi.SessionInitResult
	p.must(rpcapi.SessionInit, json.RawMessage(`{"client_id":"c","tools":[{"name":"t"}],"policies":[{"name":"a","rule":"deny_tool","target":"t"}]}`), &out)
	if out.ToolsRegistered != 1 || out.PoliciesRegistered != 1 || out.SessionID == "" {
		t.Errorf("%+v", out)
	}
	if got := p.call("t", `{}`).Results[0].Status; got != proposal.Rejected {
		t.Errorf("%s", got)
	}
}

func TestRunsKeepTheirClient(t *testing.T) {
	p := start(t, nil).as("a")
	trace := func() string {
		t.Helper()
		raw, err := p.try(rpcapi.RunsGetTrace, rpcapi.RunParams{RunID: p.startRun(rpcapi.RunsStartParams{Intent: "x"}).RunID})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if s := trace(); strings.Contains(s, "client_id") {
		t.Errorf("of no client: %s", s)
	}
	p.must(rpcapi.SessionInit, json.RawMessage(`{"client_id":"bench-7","tools":[]}`), new(rpcapi.SessionInitResult))
	if s := trace(); !strings.Contains(s, `"client_id":"bench-7"`) {
		t.Error(s)
	}
}

func TestState(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	for _, c := range []struct{ method, params, want string }{
		{rpcapi.StateGet, `{"key":"k"}`, `null`},
		{rpcapi.StateExists, `{"key":"k"}`, `false`},
		{rpcapi.StateSet, `{"key":"k","value":{"n":12345678901234567890}}`, `"ok"`},
		{rpcapi.StateSet, `{"key":"b"}`, `"ok"`},
		{rpcapi.StateSet, `{"key":"k","value":"theirs","tenant_id":"t"}`, `"ok"`},
		{rpcapi.StateGet, `{"key":"k"}`, `{"n":12345678901234567890}`},
		{rpcapi.StateGet, `{"key":"k","tenant_id":"t"}`, `"theirs"`},
		{rpcapi.StateExists, `{"key":"b"}`, `true`},
		{rpcapi.StateExists, `{"key":"b","tenant_id":"t"}`, `false`},
		{rpcapi.StateKeys, `{}`, `["b","k"]`},
		{rpcapi.StateKeys, `{"tenant_id":"u"}`, `[]`},
		{rpcapi.StateSnapshot, `{"tenant_id":"t"}`, `{"k":"theirs"}`},
		{rpcapi.StateSnapshot, `{"tenant_id":""}`, `{"b":null,"k":{"n":12345678901234567890}}`},
	} {
		if raw, err := p.try(c.method, json.RawMessage(c.params)); string(raw) != c.want || err != nil {
			t.Errorf("%s %s: %s %v, want %s", c.method, c.params, raw, err, c.want)
		}
	}
	for _, m := range []string{rpcapi.StateGet, rpcapi.StateSet, rpcapi.StateExists} {
		p.refused(rpcapi.CodeInvalidParams, m, nil)
	}
	if raw, _ := r.as("a").try(rpcapi.StateKeys, nil); string(raw) != `[]` {
		t.Errorf("another connection sees %s", raw)
	}
}

func TestAProposalThatComesAgain(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	calls := 0
	p.serve("count", func(context.Context, *rpcapi.ToolsExecuteParams) (any, error) { calls++; return calls, nil })
	submit := func(params string) string {
		return string(p.submit(`{` + params + `"proposal":{"id":"p1","actions":[{"type":"tool_call","tool":"count"}]}}`).Results[0].Output)
	}
	if one, two := submit(""), submit(""); one != "1" || two != "2" {
		t.Errorf("without idempotent: %s %s", one, two)
	}
	if one, two := submit(`"idempotent":true,`), submit(`"idempotent":true,`); one != "3" || two != "3" {
		t.Errorf("idempotent: %s %s", one, two)
	}
}

func TestPolicyCheckAsksTheDaemonsOwn(t *testing.T) {
	rules := []rpcapi.PolicyRule{{Name: "no_rm", Rule: "deny_tool_param", Target: "shell", Key: "command", Pattern: "rm -rf"}}
	r := start(t, &daemon.Options{Policies: rules})
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	var out rpcapi.PolicyCheckResult
	p.must(rpcapi.PolicyCheck, json.RawMessage(`{"tool":"shell","parameters":{"command":"rm -rf /"},"action_id":"x","run_id":"`+run+`"}`), &out)
	if out.Verdict.Kind != "deny" || out.Verdict.Violations[0].PolicyName != "no_rm" || out.ActionID != "x" || out.Tool != "shell" {
		t.Errorf("%+v", out)
	}
	p.must(rpcapi.PolicyCheck, json.RawMessage(`{"tool":"shell","parameters":{"command":"ls"},"run_id":"`+run+`"}`), &out)
	if out.Verdict.Kind != "allow" {
		t.Errorf("%+v", out)
	}
	var kept rpcapi.RunsVerdictsResult
	p.must(rpcapi.RunsVerdicts, rpcapi.RunParams{RunID: run}, &kept)
	if len(kept.Verdicts) != 2 || kept.Verdicts[0].Verdict.Kind != "deny" || kept.Verdicts[1].Verdict.Kind != "allow" {
		t.Errorf("%+v", kept)
	}
	p.answers("shell", `1`)
	if got := p.call("shell", `{"command":"rm -rf /"}`).Results[0].Status; got != proposal.Rejected {
		t.Errorf("in a proposal: %s", got)
	}
	if got := turns(t, p.trace(run)); len(got) != 1 {
		t.Errorf("%s", got)
	}
}
