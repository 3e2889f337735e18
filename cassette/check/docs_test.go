package check_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// blocks returns the fenced blocks of docs/reference/assertions.md that begin with the fence.
func blocks(t *testing.T, fence string) (all []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/reference/assertions.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(b)
	for {
		_, after, ok := strings.Cut(rest, "\n```"+fence+"\n")
		if !ok {
			return all
		}
		block, more, _ := strings.Cut(after, "\n```")
		all, rest = append(all, block), more
	}
}

// TestDocumentedAssertionsPass runs each example of docs/reference/assertions.md on the session of these tests.
func TestDocumentedAssertionsPass(t *testing.T) {
	dir := session(t)
	families := map[string]bool{}
	for _, block := range blocks(t, "yaml example") {
		for _, line := range strings.Split(block, "\n") {
			r := asserting(t, dir, strings.TrimPrefix(line, "- "))
			families[r.Assertions[0].Family] = true
			if !r.Passed {
				t.Errorf("%s", r.Assertions[0].Text("docs/reference/assertions.md"))
			}
		}
	}
	if len(families) != 6 {
		t.Errorf("expected examples of six families, got %v", families)
	}
}

func TestDocumentedScenarioParses(t *testing.T) {
	whole := blocks(t, "yaml")
	if len(whole) < 2 {
		t.Fatal("expected a whole scenario and one that normalises")
	}
	sum := strings.Repeat("a", 64)
	text := strings.Replace(whole[0], "(the digest in its manifest.json)", sum, 1)
	if _, err := check.Parse("docs", []byte(text)); err != nil {
		t.Error(err)
	}
	text = "version: 1\ncassette: {id: x, sha256: " + sum + "}\n" + whole[1] + "\nassertions:\n  - process: {exit_code: 0}\n"
	if _, err := check.Parse("docs", []byte(text)); err != nil {
		t.Error(err)
	}
}

func TestDocumentedFailure(t *testing.T) {
	got := asserting(t, session(t), "name: the greeting\nframe: {contains: \"Hello, Ida!\", eventually: {from: 1s, to: 1.6s}}").Assertions[0].Text("greeter.yaml")
	b, err := os.ReadFile("../../docs/reference/assertions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "\n```\nFAIL")
	if shown, _, ok := strings.Cut(after, "```\n"); !ok || "FAIL"+shown != got {
		t.Errorf("expected docs/reference/assertions.md to show\n%s\nit has\n%s", got, shown)
	}
}
