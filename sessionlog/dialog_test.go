package sessionlog

import (
	"fmt"
	"slices"
	"testing"
)

// log runs a conversation and returns what it became, an event a line.
func dialogLog(t *testing.T, talk func(d *Dialog) error) []string {
	t.Helper()
	var got []string
	d := NewDialog("run", func(e Event) error {
		line := fmt.Sprintf("%s %d", KindOf(e), e.Base().Turn)
		switch e := e.(type) {
		case *RunStarted:
			line += " " + e.RunID
		case *ToolRequested:
			for _, c := range e.Calls {
				line += " " + c.ID
			}
		case *ToolCompleted:
			for _, r := range e.Results {
				line += " " + r.CallID
			}
		case *RunTerminal:
			line += fmt.Sprintf(" %s %d %d", e.Reason, e.TurnsUsed, e.TotalTokens)
		}
		got = append(got, line)
		return nil
	})
	if err := talk(d); err != nil {
		t.Fatal(err)
	}
	if err := d.End(""); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestDialog has a history repeat itself, results of two turns come together, and tokens come after their answer.
func TestDialog(t *testing.T) {
	calls := func(ids ...string) *LLMCompleted {
		e := &LLMCompleted{}
		for _, id := range ids {
			e.Message.ToolCalls = append(e.Message.ToolCalls, ToolCall{ID: id})
		}
		return e
	}
	results := func(ids ...string) (out []ToolResult) {
		for _, id := range ids {
			out = append(out, ToolResult{CallID: id})
		}
		return out
	}
	got := dialogLog(t, func(d *Dialog) error {
		steps := []error{
			d.Ask(&RunStarted{}), d.Answer(calls("a", "b"), 3), d.Results(results("a"), nil),
			d.Answer(calls("a", "c"), 0), d.Results(results("a", "b", "c", "never"), nil), d.Answer(calls(), 1),
			d.Ask(&RunStarted{}), d.Answer(calls("d"), 1),
		}
		d.Spend(10)
		return errorsOf(steps)
	})
	want := []string{
		"run_started 0 run", "llm_completed 1", "tool_requested 1 a b", "tool_completed 1 a", "llm_completed 2", "tool_requested 2 c",
		"tool_completed 1 b", "tool_completed 2 c never", "llm_completed 3", "run_terminal 0 completed 3 4",
		"run_started 0 run#2", "llm_completed 4", "tool_requested 4 d", "run_terminal 0 interrupted 1 11",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func errorsOf(list []error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
