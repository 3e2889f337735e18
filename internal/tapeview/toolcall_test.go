package tapeview

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/account"
)

// TestToolCallCutAnywhere: arguments that were cut, in an escape too, leave the name of the tool at least.
func TestToolCallCutAnywhere(t *testing.T) {
	whole := `{"command":"python3 -c '\nprint(\"\u00e9\", {\"a\"})'","deep":[{"x":-1.5e3}]}`
	for n := range len(whole) {
		said := toolCall(account.ToolCall{Name: "run", Arguments: whole[:n]}, 60)
		if said == "" {
			t.Errorf("nothing is said of %q", whole[:n])
		}
		s := sayer{max: 120}
		if got := s.lines(&turn{tools: []account.ToolCall{{Arguments: whole[:n]}}, end: "5 ms"}); len(got.lines) != 2 {
			t.Errorf("%q: %q", whole[:n], got.lines)
		}
	}
}
