//go:build unix

package testbench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// liveAgent runs commands that read and change files, and looks at what they did.
func liveAgent(t *testing.T, b *testbench.Bench) {
	t.Helper()
	ctx := context.Background()
	if err := b.Files().WriteFile("note", []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := b.Processes().Command(ctx, "sh", "-c", "cat note src/a; echo more >>src/a; rm src/b; mkdir out; printf '\\377' >new; ln -s new link").Output()
	if err != nil || string(out) != "mine\na\n" {
		t.Errorf("%q, %v", out, err)
	}
	if a, err := b.Files().ReadFile("src/a"); err != nil || string(a) != "a\nmore\n" {
		t.Errorf("%q, %v", a, err)
	}
	if x, err := b.Files().ReadFile("link"); err != nil || string(x) != "\xff" {
		t.Errorf("%q, %v", x, err)
	}
	if _, err := b.Files().Stat("src/b"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	cmd := b.Processes().Command(ctx, "sh", "-c", "cat a; exit 3")
	cmd.Dir = "src"
	var exit *process.ExitError
	if out, err := cmd.Output(); !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "a\nmore\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := b.Processes().Command(ctx, "nosuch-program").Output(); err == nil {
		t.Error("it ran")
	}
}

// TestLiveCommandsOnce runs commands on this machine; then their process tape, and the run's tape, do without it.
func TestLiveCommandsOnce(t *testing.T) {
	dir := t.TempDir()
	files, tape1 := filepath.Join(dir, "files"), filepath.Join(dir, "1.tape")
	if err := os.MkdirAll(filepath.Join(files, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(files, "src", name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	calls := filepath.Join(dir, "calls.process-tape.json")
	run := func(emit string, p testbench.Processes) string {
		b := testbench.New(t, &testbench.Config{Name: "agent", Files: testbench.Files{Dir: files}, Processes: p, Emit: emit})
		liveAgent(t, b)
		diff, err := b.Files().Diff()
		if err = errors.Join(err, b.Close()); err != nil {
			t.Fatal(err)
		}
		return string(diff)
	}
	diff := run(tape1, testbench.Processes{Record: calls})
	want := read(t, tape1)
	if n := strings.Count(want, `"spawn_id":1`); n != 5 {
		t.Errorf("%d records name the command that changed files:\n%s", n, want)
	}
	t.Setenv("PATH", "") // nothing runs any more
	again := filepath.Join(dir, "2.tape")
	if got := run(again, testbench.Processes{Tape: calls}); got != diff {
		t.Errorf("from the process tape the files are others:\n%s\n%s", diff, got)
	}
	if got := read(t, again); got != want {
		t.Errorf("from the process tape another tape:\n%s\n%s", want, got)
	}
	replay, err := testbench.Replay(tape1, nil)
	if err != nil {
		t.Fatal(err)
	}
	liveAgent(t, replay)
	if got, err := replay.Files().Diff(); err != nil || string(got) != diff {
		t.Errorf("replayed, the files are others (%v):\n%s\n%s", err, diff, got)
	}
	report, err := replay.Verdict(fidelity.ByteIdentical)
	if err != nil || len(report.Divergences) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	for name, content := range map[string]string{"a": "a\n", "b": "b\n"} {
		if got := read(t, filepath.Join(files, "src", name)); got != content {
			t.Errorf("the directory itself was changed: %s holds %q", name, got)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
