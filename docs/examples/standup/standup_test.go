package standup

import (
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

func TestStandup(t *testing.T) {
	b := testbench.New(t, &testbench.Config{
		LLM:       testbench.LLM{Fixture: "testdata/standup.llm.jsonl"},
		Processes: testbench.Processes{Tape: "testdata/standup.process-tape.json"},
	})
	if err := standup(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	testbench.Golden(t, b, "testdata/standup.tape")
}

// The guide quotes the agent, its test and what answers it, letter by letter.
func TestTheGuideQuotesThis(t *testing.T) {
	guide := text(t, "../../testbench.md")
	for path, begin := range map[string]string{
		"standup.go": "func standup(", "standup_test.go": "func TestStandup(",
		"testdata/standup.llm.jsonl": "{", "testdata/standup.process-tape.json": "[",
	} {
		_, rest, found := strings.Cut("\n"+text(t, path), "\n"+begin)
		function, _, _ := strings.Cut(rest, "\n}\n")
		if !found || !strings.Contains(guide, "\n"+begin+function) {
			t.Errorf("docs/testbench.md has another text than what begins with %q in %s:\n%s%s", begin, path, begin, function)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
