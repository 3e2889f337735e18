package agent

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// inputs are where everything comes from that the agent asks for.
func inputs(name string) *testbench.Config {
	return &testbench.Config{
		Name:      name,
		LLM:       testbench.LLM{Fixture: "agent.llm.jsonl"},
		Processes: testbench.Processes{Tape: "agent.process-tape.json"},
	}
}

// TestAgent is how a Go program tests itself on a testbench: a day in some milliseconds, without a key, a network or Git.
func TestAgent(t *testing.T) {
	b := testbench.New(t, inputs("agent"))
	said, at, err := Run(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"NOTES.md says it.", "Nothing new."}, said); diff != "" {
		t.Error(diff)
	}
	if want := clock.Epoch.UnixMilli() + 24*60*60*1000 + 12 + 40; at != want { // the day, git's 12 ms and the model's 40
		t.Errorf("it ended at %d, want %d", at, want)
	}
	notes, err := b.Files().ReadFile("NOTES.md")
	if err != nil || string(notes) != "- the parser takes comments\n" {
		t.Errorf("NOTES.md holds %q, %v", notes, err)
	}
}

// TestSameTape: the script and the Go program are the same agent, so their tapes are the same but for the name of what ran, and
// either replays on the other's.
func TestSameTape(t *testing.T) {
	dir := t.TempDir()
	ofScript, ofGo := filepath.Join(dir, "script.tape"), filepath.Join(dir, "go.tape")
	emit(t, ofScript, "agent.star", func(ctx context.Context, b *testbench.Bench) error {
		_, err := script.Run(ctx, b, "agent.star", nil)
		return err
	})
	goes := func(ctx context.Context, b *testbench.Bench) error {
		_, _, err := Run(ctx, b)
		return err
	}
	emit(t, ofGo, "agent.go", goes)
	a, b := read(t, ofScript), read(t, ofGo)
	if diff := cmp.Diff(string(bytes.Replace(a, []byte("agent.star"), []byte("agent.go"), 1)), string(b)); diff != "" {
		t.Errorf("the tapes differ: -script +go\n%s", diff)
	}
	replay, err := testbench.Replay(ofScript, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := goes(t.Context(), replay); err != nil {
		t.Fatal(err)
	}
	if r, err := replay.Verdict(fidelity.ByteIdentical); err != nil || !r.Faithful() {
		t.Errorf("the Go program on the script's tape: %v, %+v", err, r)
	}
}

func emit(t *testing.T, path, name string, run func(context.Context, *testbench.Bench) error) {
	t.Helper()
	c := inputs(name)
	c.Emit = path
	b, err := testbench.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestModule: as a WASI module it does the same, which outcome mode sees; its language's runtime reads the clock and random numbers of
// its own.
func TestModule(t *testing.T) {
	if os.Getenv("TAPEDECK_LONG") == "" {
		t.Skip("compiles Go for WASI: TAPEDECK_LONG=1 tries it")
	}
	dir := t.TempDir()
	module := filepath.Join(dir, "agent.wasm")
	build := exec.Command("go", "build", "-trimpath", "-o", module, "./module") // the flags of testbench/wasi: its library is built once
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ofScript, ofModule := filepath.Join(dir, "script.tape"), filepath.Join(dir, "module.tape")
	emit(t, ofScript, "agent.star", func(ctx context.Context, b *testbench.Bench) error {
		_, err := script.Run(ctx, b, "agent.star", nil)
		return err
	})
	var out bytes.Buffer
	runs := func(ctx context.Context, b *testbench.Bench) error {
		_, err := wasi.Run(ctx, b, module, &wasi.Options{Stdout: &out})
		return err
	}
	emit(t, ofModule, "agent.wasm", runs)
	if want := "NOTES.md says it.\nNothing new.\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("it printed %q, want %q and the time", out.String(), want)
	}
	r, err := compare(ofScript, ofModule)
	if err != nil || !r.Faithful() {
		t.Errorf("by outcome: %v, %+v", err, r)
	}
	for _, recorded := range []string{ofScript, ofModule} {
		replay := testbench.NewReplay(t, recorded, &testbench.Config{OwnReadings: true})
		if err := runs(t.Context(), replay); err != nil {
			t.Errorf("the module on %s: %v", filepath.Base(recorded), err)
		}
		testbench.Check(t, replay, fidelity.Outcome)
	}
	again := filepath.Join(dir, "again.tape")
	emit(t, again, "agent.wasm", runs)
	if diff := cmp.Diff(string(read(t, ofModule)), string(read(t, again))); diff != "" {
		t.Errorf("the module's tapes differ: %s", diff)
	}
}

func compare(recorded, replay string) (*fidelity.Report, error) {
	a, err := tape.Open(recorded, nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := tape.Open(replay, nil)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return fidelity.Compare(fidelity.Outcome, a.Records(), b.Records())
}
