package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// times are those of tests, which differ from run to run.
var times = regexp.MustCompile(`[0-9.]+ ms`)

// TestScriptTranscripts runs the command lines of docs/testbench.md one after the other and holds what they print against it.
func TestScriptTranscripts(t *testing.T) {
	text, err := os.ReadFile("../../docs/testbench.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```console\n(\\$ tapedeck script .*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d transcripts found", len(blocks))
	}
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for _, m := range blocks {
		var got strings.Builder
		for line := range strings.Lines(m[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				got.WriteString(line + runLine(t, strings.TrimSpace(command)))
			}
		}
		if got, want := times.ReplaceAllString(got.String(), "N ms"), times.ReplaceAllString(m[1], "N ms"); got != want {
			t.Errorf("the guide has:\n%s\nprinted is:\n%s", want, got)
		}
	}
}
