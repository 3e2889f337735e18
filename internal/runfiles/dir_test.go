package runfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func started(run string, minute int) string {
	return fmt.Sprintf(`{"record":"started","run_id":%q,"agent_id":"pi","intent":"do %s","started_at":"2026-11-22T14:%02d:00.000000Z"}`+"\n", run, run, minute)
}

func turn(i int) string {
	return fmt.Sprintf(`{"record":"turn","index":%d,"tool":"t","parameters":{"x":%q},"verifier_verdict":"not_run"}`+"\n", i, strings.Repeat("x", 5000*i))
}

const ended = `{"record":"ended","run_id":"a","agent_id":"pi","status":"completed","outcome":{"status":"success"},"ended_at":"2026-11-22T14:05:00.000000Z"}` + "\n"

// dirOf holds runs of the agent pi.
func dirOf(t *testing.T, runs map[string]string) (*Dir, string) {
	t.Helper()
	path := t.TempDir()
	pi := filepath.Join(path, "runs", "pi")
	if err := os.MkdirAll(pi, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range runs {
		if err := os.WriteFile(filepath.Join(pi, name+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d, pi
}

// TestList: newest first, with what the first and the last whole lines say; what is no trace is named, what is no name is not
// looked at.
func TestList(t *testing.T) {
	d, pi := dirOf(t, map[string]string{
		"a": started("a", 0) + turn(0) + turn(1) + turn(20) + ended, "b": started("b", 1) + turn(0) + `{"record":"turn","ind`,
		"c": started("c", 2), "none": "{}\n", "empty": "", ".hidden": started("x", 0), "a b": started("x", 0),
	})
	if err := os.Symlink(filepath.Join(pi, "a.jsonl"), filepath.Join(pi, "link.jsonl")); err != nil {
		t.Fatal(err)
	}
	runs, skipped, err := d.List(context.Background(), "")
	if err != nil || len(skipped) != 2 {
		t.Fatalf("skipped %v, %v", skipped, err)
	}
	got := ""
	for _, r := range runs {
		got += fmt.Sprintf("%s %s %d %v; ", r.ID, r.Status, r.Turns, r.Ended.IsZero())
	}
	if want := "pi/c in_progress 0 true; pi/b in_progress 1 true; pi/a completed 21 false; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if runs, _, err := d.List(context.Background(), "other"); err != nil || len(runs) != 0 {
		t.Errorf("an agent without runs: %v, %v", runs, err)
	}
	for _, agent := range []string{"../pi", "pi/..", "p\x00i"} {
		if _, _, err := d.List(context.Background(), agent); err == nil {
			t.Errorf("agent %q is no name, and no error", agent)
		}
	}
}

// TestFollow: a line that is being written is there once it ends, and nothing comes behind the record ended.
func TestFollow(t *testing.T) {
	d, pi := dirOf(t, map[string]string{"a": started("a", 0) + turn(0)[:20]})
	f, err := os.OpenFile(filepath.Join(pi, "a.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rest := []string{turn(0)[20:] + turn(19)[:7000], turn(19)[7000:] + ended + started("a", 1)}
	n := 0
	for line, err := range d.Follow(context.Background(), runtrace.ID{Agent: "pi", Run: "a"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n <= len(rest) {
			f.WriteString(rest[n-1])
		}
		if want := []string{started("a", 0), turn(0), turn(19), ended}[n-1]; string(line)+"\n" != want {
			t.Errorf("record %d is %.60s", n, line)
		}
	}
	if n != 4 {
		t.Errorf("%d records, want 4", n)
	}
}

// TestNoRun: there is a sentinel for a run that is not there, and a path is built of names alone.
func TestNoRun(t *testing.T) {
	d, _ := dirOf(t, nil)
	for run, want := range map[string]error{"a": ErrNotFound, "../../a": nil} {
		for _, err := range d.Records(context.Background(), runtrace.ID{Agent: "pi", Run: run}) {
			var name *runtrace.NameError
			if !errors.Is(err, want) && !errors.As(err, &name) {
				t.Errorf("run %q: %v", run, err)
			}
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNoRuns) {
		t.Errorf("a directory without runs: %v", err)
	}
}
