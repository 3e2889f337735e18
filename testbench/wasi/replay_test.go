package wasi_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// agentConfig answers testdata/prog agent.
func agentConfig(t testing.TB) *testbench.Config {
	t.Helper()
	rules, err := fixture.ReadRules(strings.NewReader(`
{"match":{"contains":"What changed?"},"response":{"text":"Let me look.","tool_calls":[{"id":"1","name":"git","arguments":{}}],"usage":{"input_tokens":1,"output_tokens":2},"stop_reason":"tool_use"}}
{"match":{"contains":"M main.go"},"response":{"text":"main.go did.","tool_calls":[],"usage":{"input_tokens":3,"output_tokens":4},"stop_reason":"end_turn"},"stream":[{"text":"main.go did.","delay_ms":20}]}
`), "rules")
	if err != nil {
		t.Fatal(err)
	}
	return &testbench.Config{
		LLM:       testbench.LLM{Rules: rules},
		Processes: testbench.Processes{Calls: []process.Call{{Program: "git", Args: []string{"status", "--short"}, Stdout: " M main.go\n", DurationMS: 30}}},
		Env:       map[string]string{"MODE": "daily"},
	}
}

func TestAgent(t *testing.T) {
	r := run(t, agentConfig(t), nil, "agent").ended(t)
	if want := "main.go did. 4\ndiff --git a/report.md b/report.md\nnew file mode 100644\n"; !strings.HasPrefix(r.stdout, want) {
		t.Errorf("got\n%s", r.stdout)
	}
	kinds := kindsOf(t, r.tape)
	if kinds["llm_call"] != 2 || kinds["process_spawn"] != 1 || kinds["file_write"] != 1 || kinds["env_read"] != 1 || kinds["clock_sleep"] < 1 {
		t.Errorf("the tape has %v", kinds)
	}
}

// replayed runs prog on a tape; args nil are those of the tape.
func replayed(t testing.TB, path string, args []string) (*ran, *fidelity.Report) {
	t.Helper()
	var out, errs, tape bytes.Buffer
	b, err := testbench.Replay(path, &testbench.Config{Name: "prog.wasm", EmitTo: &tape})
	if err != nil {
		t.Fatal(err)
	}
	r := &ran{}
	r.res, r.err = wasi.Run(t.Context(), b, goModule(t), &wasi.Options{Args: args, Stdout: &out, Stderr: &errs})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.ByteIdentical)
	if err != nil {
		t.Fatal(err)
	}
	r.stdout, r.stderr, r.tape = out.String(), errs.String(), tape.Bytes()
	return r, report
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "below.txt"), []byte("below\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	plain := &testbench.Config{Seed: 3, Env: map[string]string{"MODE": "daily"}}
	for _, tt := range []struct {
		name string
		c    *testbench.Config
		o    *wasi.Options
		args []string
	}{
		{"agent", agentConfig(t), nil, []string{"agent"}},
		{"all", plain, nil, []string{"all", "x"}},
		{"files", &testbench.Config{Files: testbench.Files{Dir: dir}}, nil, []string{"files"}},
		{"stdin", plain, &wasi.Options{Stdin: strings.NewReader(strings.Repeat("long ", 2000))}, []string{"stdin"}},
		{"calls", plain, nil, []string{"calls"}},
		{"a real clock", &testbench.Config{Clock: testbench.Clock{Real: true}}, nil, []string{"all", "5ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := *tt.c
			c.Emit = filepath.Join(t.TempDir(), "run.tape")
			if tt.name == "a real clock" {
				tt.args = []string{"sleep", "5ms"}
			}
			first := run(t, &c, tt.o, tt.args...).ended(t)
			again, report := replayed(t, c.Emit, nil)
			if tt.name == "a real clock" { // whose records carry the time at which they were made
				report.Divergences = nil
			}
			if again.ended(t); len(report.Divergences) > 0 || again.stdout != first.stdout {
				t.Errorf("got %+v\n%s\nfirst:\n%s", report.Divergences, again.stdout, first.stdout)
			}
		})
	}
}

// TestReplayOfAnotherProgram: what was not recorded is refused, and told.
func TestReplayOfAnotherProgram(t *testing.T) {
	c := agentConfig(t)
	c.Emit = filepath.Join(t.TempDir(), "run.tape")
	run(t, c, nil, "agent").ended(t)
	for _, args := range [][]string{{"paths", "unknown.txt"}, {"stdin"}, {"all"}} {
		r, report := replayed(t, c.Emit, args)
		if len(report.Divergences) == 0 {
			t.Errorf("%v: got %v and no divergence\n%s%s", args, r.err, r.stdout, r.stderr)
		}
		if r.err == nil && args[0] != "all" {
			t.Errorf("%v: it ended well\n%s", args, r.stdout)
		}
		t.Log(r.err, report.Divergences)
	}
}
