package daemon

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// turnOf makes a turn of a tool call that ended, as the tables of spec/agent-daemon.md have it:
//
//	drive_cli        prompt is parameters.prompt; cli_outcome from the output; not_run
//	check_outcome    pass or fail from the output's passed
//	any other        tool, parameters, output; not_run
//	rejected by      policy_rejected names the policies; no output, no cli_outcome, not_run
//	 policies
//
// A call that failed, ran out of time or was refused before any policy judged it has no output, whatever the tool, and error says
// why.
func turnOf(o *proposal.Outcome) runtrace.Turn {
	tool := o.Action.Tool
	t := runtrace.Turn{Tool: &tool, Parameters: o.Parameters, VerifierVerdict: runtrace.VerdictNotRun}
	if tool == driveCLI {
		t.Prompt = textMember(o.Parameters, "prompt")
	}
	if o.Verdict != nil && !o.Verdict.Allowed {
		t.PolicyRejected = policyRejected(o)
		fit(&t)
		return t
	}
	if o.Result.Status == proposal.Succeeded {
		t.Output = o.Result.Output
	} else {
		t.Error = o.Result.Error
	}
	switch tool {
	case driveCLI:
		t.CLIOutcome = cliOutcome(t.Output, o.TimedOut)
	case checkOutcome:
		t.VerifierVerdict = verifierVerdict(t.Output)
	}
	fit(&t)
	return t
}

// fit gives up what a turn is too long for, rather than the turn. Only what is long is looked at: to see whether it fits costs
// as much as to write it.
func fit(t *runtrace.Turn) {
	size := len(t.Parameters) + len(t.Output)
	if t.Prompt != nil {
		size += 6 * len(*t.Prompt) // as many bytes as an escape has
	}
	if size > runtrace.MaxLine/4 || t.PolicyRejected != nil || t.Error != nil {
		t.Fit()
	}
}

// policyRejected names every policy that stood against an action.
func policyRejected(o *proposal.Outcome) *runtrace.PolicyRejected {
	var rules, reasons []string
	r := &runtrace.PolicyRejected{}
	for i := range o.Verdict.Violations {
		v := &o.Verdict.Violations[i]
		rules, reasons = append(rules, v.PolicyName), append(reasons, v.Reason)
		if r.Param == nil && v.Param != "" {
			r.Param = &v.Param
		}
	}
	r.Rule = runtrace.Truncate(strings.Join(rules, ", "))
	r.Reason = runtrace.Truncate(strings.Join(reasons, "; "))
	return r
}

// cliOutcome reads how a command line ended from what the tool said. nil is not known.
func cliOutcome(output json.RawMessage, deadline bool) *runtrace.CLIOutcome {
	if deadline {
		return runtrace.TimedOut()
	}
	code, has := 0, false
	out := (*runtrace.CLIOutcome)(nil)
	members(output, func(s *jsonscan.Scanner, key string) {
		raw := s.Raw()
		switch key {
		case "timed_out":
			if string(raw) == "true" {
				out = runtrace.TimedOut()
			}
		case "exit_code", "code", "exitCode", "returncode":
			if n, ok := integer(raw); ok && (!has || key == "exit_code") {
				code, has = n, true
			}
		}
	})
	if out == nil && has {
		out = runtrace.Exited(code)
	}
	return out
}

func verifierVerdict(output json.RawMessage) string {
	verdict := runtrace.VerdictNotRun
	members(output, func(s *jsonscan.Scanner, key string) {
		raw := s.Raw()
		if key != "passed" {
			return
		}
		switch string(raw) {
		case "true":
			verdict = runtrace.VerdictPass
		case "false":
			verdict = runtrace.VerdictFail
		}
	})
	return verdict
}

// members calls f for each member of an object, whose value f reads; of anything else for none.
func members(raw json.RawMessage, f func(s *jsonscan.Scanner, key string)) {
	var s jsonscan.Scanner
	s.Reset(raw)
	if s.Peek() != '{' {
		return
	}
	for s.Begin('{'); s.More('}'); {
		f(&s, string(s.Key()))
	}
}

// textMember is a string of an object; nil when there is none.
func textMember(raw json.RawMessage, name string) *string {
	var out *string
	members(raw, func(s *jsonscan.Scanner, key string) {
		if key != name || s.Peek() != '"' {
			s.Skip()
			return
		}
		text := s.Text()
		out = &text
	})
	return out
}

func integer(raw []byte) (int, bool) {
	var s jsonscan.Scanner
	s.Reset(raw)
	n := jsonscan.Integer[int](&s)
	return n, s.End() == nil
}
