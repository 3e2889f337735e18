//go:build unix

package testbench_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestAFIFOIsNoFixture names a FIFO, at which a reader would wait for ever, wherever a file is named, and wherever one is written.
func TestAFIFOIsNoFixture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]*testbench.Config{
		"LLM.Fixture":      {LLM: testbench.LLM{Fixture: path}},
		"LLM.Record":       {LLM: testbench.LLM{Record: path}},
		"Processes.Tape":   {Processes: testbench.Processes{Tape: path}},
		"Processes.Record": {Processes: testbench.Processes{Record: path}},
		"Files.Diff":       {Files: testbench.Files{Diff: path}},
		"Emit":             {Emit: path},
	} {
		b, err := testbench.Open(c)
		if err == nil {
			_ = b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "Config."+field+": "+path+" is a FIFO") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for field, c := range map[string]*testbench.Config{"MCP": {MCP: path}, "Net.Tape": {Net: testbench.Net{Tape: path}}} {
		if _, err := testbench.Open(c); err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
