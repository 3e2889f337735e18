//go:build unix

package suite_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

func TestAFIFOBesideATestIsNotOpened(t *testing.T) {
	for _, beside := range []string{"a_test.llm.jsonl", "a_test.process-tape.json", "a_test.main.tape"} {
		put(t, map[string]string{"a_test.star": "def main(): pass\n"})
		if err := syscall.Mkfifo(beside, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := suite.Run(t.Context(), []string{"a_test.star"}, &suite.Options{})
		if err == nil && len(s.Results) == 1 {
			err = s.Results[0].Err
		}
		if err == nil || !strings.Contains(err.Error(), beside+" is a FIFO") {
			t.Errorf("%s: got %v", beside, err)
		}
	}
}

// TestAFIFOOfAFlagIsNotOpened has the error name the flag, and what stands there.
func TestAFIFOOfAFlagIsNotOpened(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, inputs := range map[string][]*suite.Inputs{
		"--llm":       {{LLM: "fifo"}, {LLM: "record=fifo"}},
		"--processes": {{Processes: "fifo"}, {Processes: "record=fifo"}},
		"--mcp":       {{MCP: "fifo"}},
		"--net":       {{Net: "fifo"}},
		"--emit-tape": {{Emit: "fifo"}},
		"--diff":      {{Diff: "fifo"}},
	} {
		for _, in := range inputs {
			if _, err := in.Config(); err == nil || !strings.HasPrefix(err.Error(), flag+": fifo is a FIFO") {
				t.Errorf("%s: %v", flag, err)
			}
		}
	}
	program := suite.Program{Path: "fifo.wasm"}
	if err := syscall.Mkfifo(program.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := testbench.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "fifo.wasm is a FIFO") {
		t.Errorf("a module: %v", err)
	}
}
