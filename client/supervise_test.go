package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A supervisor is given what waits, again when it is escalated; what it allows runs, what it denies does not.
func TestSupervise(t *testing.T) {
	socket, _ := started(t, daemon.Options{Policies: []policy.Rule{{Name: "ask", Rule: policy.Approve, Target: "ship"}}})
	ship := client.Func("ship", "", func(context.Context, struct{}) (any, error) { return true, nil })
	agent := open(t, socket, &client.Options{AgentID: "a", Tools: []client.Tool{ship}})
	host := open(t, socket, &client.Options{Host: true})
	results := make(chan string, 2)
	go func() {
		for range 2 {
			res, err := agent.Submit(t.Context(), &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: "ship"}}})
			if err != nil {
				results <- err.Error()
				return
			}
			results <- res.Results[0].Status
		}
	}()
	for waiting := 0; waiting == 0; { // the policy has the first wait, whether somebody looks or not
		list, err := host.Pending(soon(t))
		check(t, err)
		waiting = len(list)
	}
	kinds, ids := []string{rpcapi.DecisionEscalate, rpcapi.DecisionAllow, rpcapi.DecisionDeny}, []string(nil)
	intents, err := host.Supervise(soon(t), &rpcapi.SupervisionFilter{Tools: []string{"ship"}})
	check(t, err)
	for in, err := range intents {
		check(t, err)
		kind := kinds[len(ids)]
		decided, err := host.Decide(soon(t), in.IntentID, rpcapi.Decision{Kind: kind, Reason: "because"})
		check(t, err)
		if decided != (kind != rpcapi.DecisionEscalate) {
			t.Fatalf("%s: decided %v", kind, decided)
		}
		if ids = append(ids, in.IntentID); len(ids) == len(kinds) {
			break
		}
	}
	if ids[0] != ids[1] || ids[1] == ids[2] {
		t.Fatalf("given: %q", ids)
	}
	if first, second := <-results, <-results; first != proposal.Succeeded || !strings.Contains(second, "not approved: denied: because (code -32003)") {
		t.Fatalf("results: %s, %s", first, second)
	}
	if list, err := host.Pending(soon(t)); err != nil || len(list) != 0 {
		t.Fatalf("pending: %+v, %v", list, err)
	}
	if _, err := agent.Supervise(soon(t), nil); !errors.Is(err, client.Internal) {
		t.Fatalf("an agent supervises: %v", err)
	}
}
