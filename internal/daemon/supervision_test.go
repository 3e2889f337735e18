package daemon_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// supervise subscribes and returns what waits already.
func (p *peer) supervise(filter string) []rpcapi.Intent {
	p.t.Helper()
	var out rpcapi.SupervisionSubscribeResult
	p.must(rpcapi.SupervisionSubscribe, json.RawMessage(`{"filter":`+filter+`}`), &out)
	if !out.Subscribed {
		p.t.Fatal("not subscribed")
	}
	return out.Intents
}

func (p *peer) pending() []rpcapi.Intent {
	p.t.Helper()
	var out rpcapi.SupervisionPendingResult
	p.must(rpcapi.SupervisionPending, nil, &out)
	return out.Intents
}

func (p *peer) intent() (in rpcapi.Intent) {
	p.t.Helper()
	n := p.next()
	if err := json.Unmarshal(n.Params, &in); err != nil || n.Method != rpcapi.SupervisionIntent {
		p.t.Fatalf("%s %s: %v", n.Method, n.Params, err)
	}
	return in
}

func (p *peer) decide(id, kind, reason string) {
	p.t.Helper()
	p.must(rpcapi.SupervisionDecide, rpcapi.SupervisionDecideParams{IntentID: id, Decision: rpcapi.Decision{Kind: kind, Reason: reason}}, nil)
}

func (p *peer) verdicts(run string) []rpcapi.PolicyCheckResult {
	p.t.Helper()
	var out rpcapi.RunsVerdictsResult
	p.must(rpcapi.RunsVerdicts, rpcapi.RunParams{RunID: run}, &out)
	return out.Verdicts
}

// A submitted proposal goes on beside the test.
type going struct {
	out json.RawMessage
	err error
}

func (p *peer) submitting(params string) <-chan going {
	ch := make(chan going, 1)
	go func() {
		var g going
		g.err = p.Call(p.t.Context(), p.NewID(), rpcapi.ProposalSubmit, json.RawMessage(params), &g.out)
		ch <- g
	}()
	return ch
}

const searches = `{"proposal":{"id":"p1","actions":[{"id":"a1","type":"tool_call","tool":"search","parameters":{"q":"the secret","n":1}}]}}`

func TestASupervisorAllowsAProposal(t *testing.T) {
	r := start(t, nil)
	host, p := r.host(), r.as("coder")
	p.answers("search", `{"hits":3}`)
	run := p.startRun(rpcapi.RunsStartParams{Intent: "find it"})
	defer func() {
		if v := p.verdicts(run.RunID); len(v) != 1 || v[0].Verdict.Approval == nil || v[0].Verdict.Approval.Reason != "why not" {
			t.Errorf("verdicts: %+v", v)
		}
	}()
	if waiting := host.supervise(`{}`); len(waiting) != 0 {
		t.Fatalf("waits before anything was proposed: %+v", waiting)
	}
	done := p.submitting(searches)
	in := host.intent()
	a := in.Actions[0]
	if in.AgentID != "coder" || in.RunID != run.RunID || in.ProposalID != "p1" || a.Tool != "search" || strings.Join(a.ParameterKeys, " ") != "n q" ||
		len(a.ParamsDigest) != 64 || !in.Deadline.After(in.ParkedAt) {
		t.Fatalf("intent: %+v", in)
	}
	if raw, _ := json.Marshal(in); strings.Contains(string(raw), "secret") {
		t.Fatalf("the intent has a value: %s", raw)
	}
	if list := host.pending(); len(list) != 1 || list[0].IntentID != in.IntentID {
		t.Fatalf("pending: %+v", list)
	}
	host.decide(in.IntentID, rpcapi.DecisionAllow, "why not")
	if g := <-done; g.err != nil || !strings.Contains(string(g.out), `"hits":3`) {
		t.Fatalf("%s, %v", g.out, g.err)
	}
	if len(host.pending()) != 0 {
		t.Fatal("it waits on, decided")
	}
	host.refused(rpcapi.CodeInvalidParams, rpcapi.SupervisionDecide,
		rpcapi.SupervisionDecideParams{IntentID: in.IntentID, Decision: rpcapi.Decision{Kind: rpcapi.DecisionDeny}})
}

func TestADeniedProposalIsInTheTrace(t *testing.T) {
	r := start(t, nil)
	host, p := r.host(), r.as("coder")
	p.answers("search", `{}`)
	run := p.startRun(rpcapi.RunsStartParams{Intent: "find it"})
	host.supervise(`null`)
	done := p.submitting(`{"proposal":{"actions":[{"id":"a0","type":"tool_call","tool":"no such tool"},
		{"id":"a1","type":"state_write","parameters":{"key":"k","value":1}},{"id":"a2","type":"tool_call","tool":"search","parameters":{"q":"x"}}]}}`)
	first := host.intent()
	host.decide(first.IntentID, rpcapi.DecisionEscalate, "ask Ann")
	again := host.intent()
	if again.IntentID != first.IntentID || again.Escalated != "escalated: ask Ann" {
		t.Fatalf("escalated: %+v", again)
	}
	host.decide(first.IntentID, rpcapi.DecisionDeny, "not on a Friday")
	g := <-done
	var refused *jsonrpc.Error
	if !errors.As(g.err, &refused) || refused.Code != rpcapi.CodeApproval || !strings.Contains(refused.Message, "not on a Friday") {
		t.Fatalf("%s, %v", g.out, g.err)
	}
	got := turns(t, p.trace(run.RunID))
	if len(got) != 2 || strings.Count(strings.Join(got, ""), `"policy_rejected":{"rule":"supervision","reason":"denied: not on a Friday"}`) != 2 {
		t.Fatalf("turns: %s", got)
	}
	if v := p.verdicts(run.RunID); len(v) != 3 || v[1].Type != "state_write" || v[1].Verdict.Kind != "deny" {
		t.Fatalf("verdicts: %+v", v)
	}
}

func TestProposalsThatNoFilterMatchesDoNotWait(t *testing.T) {
	r := start(t, nil)
	host, p := r.host(), r.as("coder")
	p.answers("search", `{}`)
	host.supervise(`{"agent_id":"somebody else"}`)
	p.submit(searches)
	host.supervise(`{"tools":["shell"],"of":"a later version"}`)
	p.submit(searches)
	host.supervise(`{"tools":["shell","search"]}`)
	done := p.submitting(searches)
	host.intent()
	host.must(rpcapi.SupervisionUnsubscribe, nil, nil)
	if list := host.pending(); len(list) != 1 {
		t.Fatalf("who stopped looking released what waited: %+v", list)
	}
	p.close() // who proposed it goes
	<-done
	for len(host.pending()) > 0 { // until the daemon has seen it go
	}
}

func TestSupervisionIsForTheHost(t *testing.T) {
	r := start(t, nil)
	p := r.as("coder")
	for _, m := range []string{rpcapi.SupervisionSubscribe, rpcapi.SupervisionPending, rpcapi.SupervisionDecide} {
		p.refused(rpcapi.CodeInternal, m, nil)
	}
	r.host().refused(rpcapi.CodeInvalidParams, rpcapi.SupervisionDecide, json.RawMessage(`{"intent_id":"x","decision":{"kind":"perhaps"}}`))
}

// A policy leaves one action to a person, whoever is there to see it.
func TestApprove(t *testing.T) {
	rules := []policy.Rule{{Name: "ask", Rule: policy.Approve, Target: "shell", Key: "command", Pattern: "deploy"}}
	r := start(t, &daemon.Options{Policies: rules})
	host, p := r.host(), r.as("coder")
	p.answers("shell", `{"ok":true}`)
	run := p.startRun(rpcapi.RunsStartParams{Intent: "ship it"})
	if got := p.call("shell", `{"command":"ls"}`); got.Results[0].Status != proposal.Succeeded {
		t.Fatalf("what the rule does not mean: %+v", got)
	}
	for _, kind := range []string{rpcapi.DecisionAllow, rpcapi.DecisionDeny} {
		done := p.submitting(`{"proposal":{"actions":[{"id":"a1","type":"tool_call","tool":"shell","parameters":{"command":"make deploy"}}]}}`)
		list := host.pending()
		for len(list) == 0 {
			list = host.pending()
		}
		if in := list[0]; in.Policies[0] != "ask" || !strings.Contains(in.Reason, "'deploy'") {
			t.Fatalf("intent: %+v", in)
		}
		host.decide(list[0].IntentID, kind, "by Ann")
		want := map[string]string{rpcapi.DecisionAllow: `"status":"succeeded"`, rpcapi.DecisionDeny: `"status":"rejected"`}[kind]
		if g := <-done; g.err != nil || !strings.Contains(string(g.out), want) {
			t.Fatalf("%s: %s, %v", kind, g.out, g.err)
		}
	}
	verdicts := p.verdicts(run.RunID)
	if n := len(verdicts); n != 3 {
		t.Fatalf("%d verdicts", n)
	}
	if v := verdicts[1].Verdict; v.Kind != "allow" || v.Approval == nil || v.Approval.Reason != "by Ann" || v.Approval.Policies[0] != "ask" {
		t.Fatalf("allowed: %+v", v)
	}
	if v := verdicts[2].Verdict; v.Kind != "deny" || v.Reason != "denied: by Ann" || v.Violations[0].Rule != policy.Approve {
		t.Fatalf("denied: %+v", v)
	}
}

// What a policy asks is for every supervisor, and what it judges by counts when a person has decided, not before.
func TestAnApprovalDoesNotOutliveTheState(t *testing.T) {
	r := start(t, &daemon.Options{Policies: []policy.Rule{
		{Name: "ask", Rule: policy.Approve, Target: "shell"}, {Name: "open", Rule: policy.RequireState, Key: "open", Value: json.RawMessage(`true`)},
	}})
	host, p := r.host(), r.as("coder")
	p.answers("shell", `{}`)
	p.must(rpcapi.StateSet, json.RawMessage(`{"key":"open","value":true}`), nil)
	host.supervise(`{"tools":["another"]}`)
	done := p.submitting(`{"proposal":{"actions":[{"type":"tool_call","tool":"shell"}]}}`)
	in := host.intent()
	p.must(rpcapi.StateSet, json.RawMessage(`{"key":"open","value":false}`), nil)
	host.decide(in.IntentID, rpcapi.DecisionAllow, "")
	if g := <-done; g.err != nil || !strings.Contains(string(g.out), `"status":"rejected"`) || !strings.Contains(string(g.out), "policy 'open'") {
		t.Fatalf("%s, %v", g.out, g.err)
	}
}

// A daemon that stops denies what waits: nobody can decide it any more.
func TestAStopDeniesWhatWaits(t *testing.T) {
	r := start(t, &daemon.Options{Policies: []policy.Rule{{Name: "ask", Rule: policy.Approve, Target: "shell"}}})
	host, p := r.host(), r.as("coder")
	p.answers("shell", `{}`)
	done := p.submitting(`{"proposal":{"actions":[{"type":"tool_call","tool":"shell"}]}}`)
	for len(host.pending()) == 0 {
	}
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g := <-done; g.err != nil || !strings.Contains(string(g.out), "denied: the daemon is stopping") {
		t.Fatalf("%s, %v", g.out, g.err)
	}
}
