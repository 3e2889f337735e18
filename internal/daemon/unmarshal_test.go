package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// What a client is told of its params is in the words of the wire, and escaped once.
func TestWrongParamsAreNamed(t *testing.T) {
	p := start(t, nil).as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	for _, tt := range []struct {
		method, params string
		code           int
		want           string
	}{
		{rpcapi.ToolsRegister, `{"name":"t"}`, rpcapi.CodeInvalidParams, "want an array of tools, got an object"},
		{rpcapi.ToolsRegister, `[{"name":1}]`, rpcapi.CodeInvalidParams, "name: want a string, got a number"},
		{rpcapi.ToolsRegister, `[{}]`, rpcapi.CodeInvalidParams, "tool 0: want a name of 1 to 256 bytes"},
		{rpcapi.ToolsRegister, `[{"name":"t\"1\"","parameters":{"type":1}}]`, rpcapi.CodeInvalidParams, `tool 0, t"1": `},
		{rpcapi.SessionInit, `{"tools":{}}`, rpcapi.CodeInvalidParams, "tools: want an array of tools, got an object"},
		{rpcapi.SessionInit, `{"tools":[],"policies":"no"}`, rpcapi.CodeInvalidParams, "policies: want an array of policies, got a string"},
		{rpcapi.ToolsUnregister, `["t"]`, rpcapi.CodeInvalidParams, "want an object, got an array"},
		{rpcapi.RunsGetTrace, `{"run_id":"x","cursor":1.5}`, rpcapi.CodeInvalidParams, "cursor: want a whole number, got 1.5"},
		{rpcapi.RunsGetTrace, `{"run_id":true}`, rpcapi.CodeInvalidParams, "run_id: want a string, got true or false"},
		{rpcapi.RunsRecordTurns, `{"run_id":"x","turns":{}}`, rpcapi.CodeInvalidParams, "1 to 256 of them"},
		{rpcapi.RunsComplete, `{"run_id":"` + run + `"}`, rpcapi.CodeInvalidParams, "outcome.status is required"},
		{rpcapi.RunsComplete, `{"run_id":"` + run + `","outcome":{"status":"done","summary":1}}`, rpcapi.CodeInvalidParams, "outcome: summary: want a string, got a number"},
		{rpcapi.RunsComplete, `{"run_id":"` + run + `","outcome":{"status":"so\"so\n"}}`, rpcapi.CodeInvalidParams, `got "so"so\n"`},
		{rpcapi.ProposalSubmit, `{"proposal":{"actions":[]},"scope":[]}`, rpcapi.CodeInvalidParams, "want an object, got an array"},
		{rpcapi.ServerHandshake, `{"protocol_version":"1"}`, rpcapi.CodeVersion, `the client asks for "1"`},
		{rpcapi.ServerHandshake, `{"protocol_version":3,"required_capabilities":["x.v1"]}`, rpcapi.CodeCapability, `this daemon has no "x.v1"`},
	} {
		said := p.refused(tt.code, tt.method, json.RawMessage(tt.params)).Message
		if !strings.Contains(said, tt.want) || strings.Contains(said, "Go ") || strings.Contains(said, "rpcapi") {
			t.Errorf("%s %s: %s\nwant %s", tt.method, tt.params, said, tt.want)
		}
	}
}
