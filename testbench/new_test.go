package testbench_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestNewSaysWhatNothingAnswers asks every axis of a zero Config. Each failure says what was asked and how to give it, and stands
// once.
func TestNewSaysWhatNothingAnswers(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		ask  func(b *testbench.Bench) error
		want []string
	}{
		"model": {func(b *testbench.Bench) error {
			_, err := b.Model().Complete(ctx, &fixture.Request{Messages: "what is the time?"})
			return err
		}, []string{"what is the time?", "Config.LLM.Fixture", "--llm"}},
		"command": {func(b *testbench.Bench) error { return b.Processes().Command(ctx, "git", "status").Run() },
			[]string{"git status", "Config.Processes.Tape", "--processes"}},
		"network": {func(b *testbench.Bench) error {
			res, err := b.Client().Get("https://example.com/x")
			if err == nil {
				res.Body.Close()
			}
			return err
		}, []string{"https://example.com/x", "Config.Net.Tape", "--net"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeT(t)
			b := testbench.New(f, nil)
			for range 2 {
				if err := tt.ask(b); err == nil {
					t.Fatal("it was answered")
				}
			}
			said := f.end()
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("said %q, want %q in it", said, want)
				}
			}
			if b.Refused() == nil {
				t.Error("Refused is nil")
			}
			t.Log(said)
		})
	}
}

// TestNewSaysWhatWasNotUsed has a rule and a call that nobody asks for.
func TestNewSaysWhatWasNotUsed(t *testing.T) {
	conf := &testbench.Config{
		LLM:       testbench.LLM{Rules: []fixture.Rule{{Match: fixture.Match{Contains: "hello"}, Response: &fixture.Response{Text: "hi"}}}},
		Processes: testbench.Processes{Calls: []process.Call{{Program: "git", Args: []string{"status"}}}},
	}
	f := newFakeT(t)
	testbench.New(f, conf)
	said := f.end()
	for _, want := range []string{"hello", "git status", "never asked for", "Config.Unused"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q in it", said, want)
		}
	}
	t.Log(said)
	conf.Unused = true
	f = newFakeT(t)
	testbench.New(f, conf)
	if said := f.end(); said != "" {
		t.Errorf("with Unused it said %q", said)
	}
}

// TestNewOpensNothingThatContradictsItself has each of these fail the test at once.
func TestNewOpensNothingThatContradictsItself(t *testing.T) {
	for name, conf := range map[string]*testbench.Config{
		"Config.LLM":                    {LLM: testbench.LLM{Live: true, Fixture: "x"}},
		"Config.LLM.Fixture":            {LLM: testbench.LLM{Fixture: "testdata/none.jsonl"}},
		"Config.Processes":              {Processes: testbench.Processes{Live: true, Tape: "x"}},
		"Config.Processes.Tape":         {Processes: testbench.Processes{Tape: "testdata/none.json"}},
		"Config.Net's Tape":             {Net: testbench.Net{Tape: "x", Transport: http.DefaultTransport}},
		"Config.Files.WriteBack":        {Files: testbench.Files{WriteBack: true}},
		"Config.Net.Tape":               {Net: testbench.Net{Tape: "testdata/none.tape"}},
		"Config.Net":                    {Net: testbench.Net{Allow: []string{"https://example.com/"}}},
		"Config.Env":                    {Env: map[string]string{"A=B": "x"}},
		"Config.Emit: . is a directory": {Emit: "."},
	} {
		f := newFakeT(t)
		f.run(func() { testbench.New(f, conf) })
		if said := f.end(); !f.fatal || !strings.Contains(said, name) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

// TestFailedRunsAreNotWrittenBack has a test that failed leave the directory below its files as it was.
func TestFailedRunsAreNotWrittenBack(t *testing.T) {
	for _, fails := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.txt")
		writeFile(t, path, "old")
		f := newFakeT(t)
		b := testbench.New(f, &testbench.Config{Files: testbench.Files{Dir: dir, WriteBack: true}})
		if err := b.Files().WriteFile("a.txt", []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
		if fails {
			f.Errorf("it did something else")
		}
		f.end()
		if got := readAll(t, path); (got == "old") != fails {
			t.Errorf("a test that failed: %t left %q", fails, got)
		}
	}
}
