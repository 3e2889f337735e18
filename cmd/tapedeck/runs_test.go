package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A verdict on an action that calls no tool is told by the action's type.
func TestVerdictsNameWhatTheyAreAbout(t *testing.T) {
	var out bytes.Buffer
	err := writeVerdicts(&out, []rpcapi.PolicyCheckResult{
		{Type: "state_write", Verdict: rpcapi.PolicyDecision{Kind: "allow"}},
		{Type: "tool_call", Tool: "shell", Verdict: rpcapi.PolicyDecision{Kind: "deny"}},
	})
	if err != nil || !strings.Contains(out.String(), "allow  state_write  ") || !strings.Contains(out.String(), "deny   shell  ") {
		t.Errorf("%v:\n%s", err, &out)
	}
}
