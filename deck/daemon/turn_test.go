package daemon

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// TestTurnOf makes turns of calls: as the protocol has those of its two tools, within its limits, and without a secret, also where a
// limit would cut one in two.
func TestTurnOf(t *testing.T) {
	const secret = "lt4Xw2Lk9Vb4Nm6Tr8Yp"
	s := scrub.New(scrub.Key{1}, nil)
	s.AddSecret("token", secret)
	long := strings.Repeat("x", runtrace.MaxString-5)
	for _, c := range []struct {
		tool, args, output string
		failed             bool
		want               string // what the turn holds, "!" before what it does not
	}{
		{"read", `{"p":1}`, `"one"`, false, `{"index":0,"tool":"read","parameters":{"p":1},"output":"one","verifier_verdict":"not_run"}`},
		{"read", `{"p":1}`, "", false, `"parameters":{"p":1},"verifier_verdict"`},
		{"read", "", `[{"type":"text"}]`, true, `"error":"[{\"type\":\"text\"}]"`},
		{"read", "", `"no such file"`, true, `"error":"no such file"`},
		{"read", "", `"no such file"`, true, `!"output"`},
		{"read", `"{not JSON"`, `null`, false, `"parameters":"{not JSON"`},
		{"drive_cli", `{"prompt":"do \"it\""}`, `{"exit_code":3}`, false, `"prompt":"do \"it\""`},
		{"drive_cli", `{"prompt":"do it"}`, `{"exit_code":3}`, false, `"cli_outcome":{"outcome":"exited","code":3}`},
		{"drive_cli", `{"prompt":"do it"}`, `{"exit_code":3,"timed_out":true}`, false, `"cli_outcome":{"outcome":"timeout"}`},
		{"drive_cli", `[]`, `"text"`, false, `!cli_outcome`},
		{"check_outcome", `{}`, `{"passed":true}`, false, `"verifier_verdict":"pass"`},
		{"check_outcome", `{}`, `{"passed":false}`, false, `"verifier_verdict":"fail"`},
		{"check_outcome", `{}`, `{}`, false, `"verifier_verdict":"not_run"`},
		{"read", `{}`, `"` + long + secret + long + `"`, false, `!lt4Xw`},
		{"read", `{"k":"` + secret + `"}`, `"` + secret + `"`, false, `!` + secret},
		{"read", `{}`, `["` + strings.Repeat(long+`","`, 40) + `"]`, false, runtrace.OverLine},
	} {
		call := &sessionlog.ToolCall{ID: "c", Name: c.tool, Arguments: json.RawMessage(c.args)}
		var result *sessionlog.ToolResult
		if c.output != "" {
			result = &sessionlog.ToolResult{CallID: "c", Output: json.RawMessage(c.output), IsError: c.failed}
		}
		turn, err := turnOf(call, result, s.Bytes)
		if err != nil || !json.Valid(turn) || len(turn) > runtrace.MaxLine {
			t.Errorf("%.100s: %d bytes, %v", c.output, len(turn), err)
			continue
		}
		if not, ok := strings.CutPrefix(c.want, "!"); ok == strings.Contains(string(turn), not) {
			t.Errorf("%.300s, want %s", turn, c.want)
		}
	}
}
