package testbench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestThinPath runs the axes that need no file on one tape, twice: the bytes are the same.
func TestThinPath(t *testing.T) {
	conf := &testbench.Config{
		LLM:       testbench.LLM{Rules: []fixture.Rule{{Match: fixture.Match{Any: true}, Times: 3, Response: &fixture.Response{Text: "hi"}}}},
		Processes: testbench.Processes{Calls: []process.Call{{Program: "git", Args: []string{"status"}, Stdout: "clean\n", DurationMS: 5}}},
		Env:       map[string]string{"HOME": "/home/x"},
	}
	b := testbench.New(t, conf)
	ctx := context.Background()
	b.Clock().Now()
	if err := b.Clock().Sleep(ctx, 25*time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := b.Model().Complete(ctx, &fixture.Request{Messages: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := b.Processes().Command(ctx, "git", "status").Output(); err != nil || string(out) != "clean\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := b.Random().Int(1, 6); err != nil {
		t.Error(err)
	}
	if v, ok := b.Getenv("HOME"); v != "/home/x" || !ok {
		t.Errorf("%q %t", v, ok)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	records, err := b.Records()
	if err != nil || len(records) != 8 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// TestUseAfterClose has what comes after Close fail, and what asks for the tape then not wait for ever.
func TestUseAfterClose(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{Emit: filepath.Join(t.TempDir(), "run.tape")})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_ = b.Clock().Sleep(context.Background(), time.Second) // what it records may fail here, or later
	if _, err := b.Records(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsWrittenOverWhatTheRunReads(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"rules.jsonl", "git.json", "agent.star", "tools.tape"} {
		if err := os.WriteFile(at(name), []byte("[]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("rules.jsonl"), at("link")); err != nil {
		t.Skip(err)
	}
	for name, c := range map[string]*testbench.Config{
		"the tape over rules":               {LLM: testbench.LLM{Fixture: at("rules.jsonl")}, Emit: at("rules.jsonl")},
		"the tape over a link to rules":     {LLM: testbench.LLM{Fixture: at("rules.jsonl")}, Emit: at("link")},
		"the tape over the program":         {Name: at("agent.star"), Emit: at("agent.star")},
		"the tape over what answers tools":  {MCP: at("tools.tape"), Emit: at("tools.tape")},
		"the tape over what answers HTTP":   {Net: testbench.Net{Tape: at("tools.tape")}, Emit: at("tools.tape")},
		"the diff over calls":               {Processes: testbench.Processes{Tape: at("git.json")}, Files: testbench.Files{Diff: at("git.json")}},
		"recorded calls over the program":   {Name: at("agent.star"), Processes: testbench.Processes{Record: at("agent.star")}},
		"recorded rules over those":         {LLM: testbench.LLM{Fixture: at("rules.jsonl"), Record: at("rules.jsonl")}},
		"the diff over the tape, both new":  {Emit: at("new"), Files: testbench.Files{Diff: at("new")}},
		"two that are the same by its name": {Emit: at("new"), Processes: testbench.Processes{Record: at(".") + "/x/../new"}},
	} {
		if _, err := testbench.Open(c); err == nil || !strings.Contains(err.Error(), "would write over") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	for _, name := range []string{"rules.jsonl", "git.json", "agent.star", "tools.tape"} {
		if b, err := os.ReadFile(at(name)); err != nil || string(b) != "[]" {
			t.Errorf("%s: %q, %v: want it as it was", name, b, err)
		}
	}
}
