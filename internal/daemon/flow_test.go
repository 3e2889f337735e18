package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// turns of a trace, without its first record (started) and its last, when that is ended.
func turns(t testing.TB, tr rpcapi.RunsGetTraceResult) []string {
	t.Helper()
	var out []string
	for i, raw := range tr.Records {
		var r struct{ Record string }
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatalf("record %d: %s: %v", i, raw, err)
		}
		if r.Record == "turn" {
			out = append(out, string(raw))
		}
	}
	return out
}

func TestOneRunFromEndToEnd(t *testing.T) {
	r := start(t, nil)
	p := r.as("coder")
	p.answers("search", `{"hits":3}`)
	run := p.startRun(rpcapi.RunsStartParams{Intent: "find it"})
	if run.AgentID != "coder" {
		t.Fatalf("agent: %+v", run)
	}
	out := p.call("search", `{"q":"x"}`)
	if len(out.Results) != 1 || out.Results[0].Status != proposal.Succeeded || string(out.Results[0].Output) != `{"hits":3}` {
		t.Fatalf("results: %+v", out)
	}
	got := turns(t, p.trace(run.RunID))
	want := `{"record":"turn","index":0,"tool":"search","parameters":{"q":"x"},"output":{"hits":3},"verifier_verdict":"not_run"}`
	if len(got) != 1 || got[0] != want {
		t.Fatalf("turns:\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run.RunID+`","outcome":{"status":"success","ours":1}}`), nil)
	tr := p.trace(run.RunID)
	last := string(tr.Records[len(tr.Records)-1])
	if !strings.Contains(last, `"outcome":{"status":"success","ours":1}`) || !strings.Contains(last, `"completed"`) {
		t.Fatalf("ended: %s", last)
	}
	p.refused(rpcapi.CodeInternal, rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run.RunID+`","outcome":{"status":"success"}}`))
	p.call("search", `{"q":"y"}`)
	if n := len(turns(t, p.trace(run.RunID))); n != 1 {
		t.Fatalf("a turn was recorded after the run's end: %d", n)
	}
}

func TestNoAuth(t *testing.T) {
	r := start(t, &daemon.Options{NoAuth: true})
	p := r.connect()
	p.answers("search", `1`)
	run := p.startRun(rpcapi.RunsStartParams{AgentName: "My  Agent!"})
	if run.AgentID != "name:my-agent" {
		t.Fatalf("agent: %+v", run)
	}
	var auth rpcapi.SessionAuthResult
	p.must(rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: "whatever"}, &auth)
	if !auth.OK || auth.AuthEnabled {
		t.Fatalf("session.auth: %+v", auth)
	}
	p.call("search", `{}`)
	if n := len(turns(t, p.trace(run.RunID))); n != 1 {
		t.Fatalf("turns: %d", n)
	}
}
