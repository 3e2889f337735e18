package suite_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

func TestInputsSayWhatTheyAskFor(t *testing.T) {
	put(t, map[string]string{"a.jsonl": "", "p.json": "", "live": "", "d/x": "", "m": "", "n.rec/run.tape": ""})
	newYear := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		in   suite.Inputs
		want testbench.Config
	}{
		{suite.Inputs{}, testbench.Config{}},
		{suite.Inputs{Clock: "paused", Net: "deny"}, testbench.Config{}},
		{suite.Inputs{Clock: "real", Seed: 7}, testbench.Config{Clock: testbench.Clock{Real: true}, Seed: 7}},
		{suite.Inputs{Clock: "paused=2027-01-01T00:00:00Z"}, testbench.Config{Clock: testbench.Clock{Start: newYear}}},
		{suite.Inputs{LLM: "a.jsonl", Processes: "p.json"}, testbench.Config{LLM: testbench.LLM{Fixture: "a.jsonl"}, Processes: testbench.Processes{Tape: "p.json"}}},
		{suite.Inputs{LLM: "record=a=b", Processes: "record=p"}, testbench.Config{LLM: testbench.LLM{Record: "a=b"}, Processes: testbench.Processes{Record: "p"}}},
		{suite.Inputs{LLM: "live", Processes: "live"}, testbench.Config{LLM: testbench.LLM{Live: true}, Processes: testbench.Processes{Live: true}}},
		{suite.Inputs{LLM: "./live"}, testbench.Config{LLM: testbench.LLM{Fixture: "./live"}}},
		{suite.Inputs{Files: "d", Diff: "p", WriteBack: true}, testbench.Config{Files: testbench.Files{Dir: "d", Diff: "p", WriteBack: true}}},
		{suite.Inputs{MCP: "m", Net: "n.rec", Emit: "t"}, testbench.Config{MCP: "m", Net: testbench.Net{Tape: "n.rec"}, Emit: "t"}},
		{suite.Inputs{Net: "allow=a.example, [::1]:80"}, testbench.Config{Net: testbench.Net{Allow: []string{"a.example", "[::1]:80"}}}},
		{suite.Inputs{Env: []string{"A=", "B=x=y", "A=2"}}, testbench.Config{Env: map[string]string{"A": "2", "B": "x=y"}}},
	} {
		got, err := tt.in.Config()
		if err != nil || !reflect.DeepEqual(got, &tt.want) {
			t.Errorf("%+v gives %+v, %v", tt.in, got, err)
		}
	}
	got, err := (&suite.Inputs{Clock: "paused=1767225600000"}).Config()
	if err != nil || !got.Clock.Start.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("Unix ms give %v, %v", got, err)
	}
}

func TestInputsThatSayNothing(t *testing.T) {
	for _, tt := range []struct {
		in   suite.Inputs
		want string // what the error names
	}{
		{suite.Inputs{Clock: "later"}, "--clock"}, {suite.Inputs{Clock: "paused="}, "2026-01-01T00:00:00Z"},
		{suite.Inputs{Clock: "paused=tomorrow"}, "Unix ms"}, {suite.Inputs{Clock: "real=1"}, "--clock"},
		{suite.Inputs{Clock: "paused=9223372036854775807"}, "years"},
		{suite.Inputs{LLM: "record="}, "--llm"}, {suite.Inputs{Processes: "record="}, "--processes"},
		{suite.Inputs{Net: "allow="}, "HOST"}, {suite.Inputs{Net: "allow=a,,b"}, "HOST"},
		{suite.Inputs{Env: []string{"A"}}, "NAME=VALUE"}, {suite.Inputs{Env: []string{"=1"}}, "NAME=VALUE"},
		{suite.Inputs{WriteBack: true}, "--files"}, {suite.Inputs{Files: "nowhere"}, "--files: stat nowhere"},
		{suite.Inputs{LLM: "nowhere"}, "--llm: stat nowhere"}, {suite.Inputs{Processes: "nowhere"}, "--processes: stat nowhere"},
		{suite.Inputs{LLM: "record"}, "want record=OUT"},
		{suite.Inputs{Net: "allow"}, "want allow=HOST"},
	} {
		if c, err := tt.in.Config(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v gives %+v, %v: want an error with %s", tt.in, c, err, tt.want)
		}
	}
}

// TestFlagged: what Open says of a field reads as what is said of its flag.
func TestFlagged(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.jsonl")
	if err := os.WriteFile(rules, []byte(`{"match":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for flag, c := range map[string]*testbench.Config{
		"--llm: ":       {LLM: testbench.LLM{Fixture: rules}},
		"--files: ":     {Files: testbench.Files{Dir: rules}},
		"--emit-tape: ": {LLM: testbench.LLM{Fixture: rules}, Emit: rules},
	} {
		_, err := testbench.Open(c)
		var field *testbench.ConfigError
		if !errors.As(err, &field) || !strings.HasPrefix(suite.Flagged(err).Error(), flag) {
			t.Errorf("%v reads %v: want %s and a ConfigError", err, suite.Flagged(err), flag)
		}
	}
}
