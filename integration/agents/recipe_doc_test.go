package agents

import (
	_ "embed"
	"os"
	"strings"
	"testing"
)

// busyMasks is the tapedeck.yaml of docs/agents.md for agents that make up names of what they do side by side.
//
//go:embed testdata/busy.yaml
var busyMasks string

// TestRecipeOfDocs: what the documents say to write is what the agents are tried with.
func TestRecipeOfDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(busyMasks) {
		if !strings.Contains(string(doc), line) {
			t.Errorf("docs/agents.md does not have %q", line)
		}
	}
}
