//go:build unix

package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/process"
)

// newHost returns a host whose directories are gone with the test, which sees to that.
func newHost(t *testing.T, o *process.HostOptions) *process.Host {
	t.Helper()
	if o == nil {
		o = &process.HostOptions{}
	}
	o.Dir = t.TempDir()
	h := process.NewHost(o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return h
}

// sh is a command of a shell.
func sh(text string) *process.Command {
	return &process.Command{Program: "sh", Args: []string{"-c", text}}
}

// run runs a command that comes to an end.
func run(t *testing.T, h *process.Host, c *process.Command) *process.Result {
	t.Helper()
	res, err := h.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestHost(t *testing.T) {
	h := newHost(t, nil)
	res := run(t, h, sh("cat; echo out; echo err >&2; exit 3"))
	want := &process.Result{Stdout: []byte("out\n"), Stderr: []byte("err\n"), ExitCode: 3, Passed: true}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Error(diff)
	}
	c := sh("cat")
	c.Stdin = []byte(strings.Repeat("line\n", 100_000))
	if res := run(t, h, c); string(res.Stdout) != string(c.Stdin) {
		t.Errorf("%d bytes came back of %d", len(res.Stdout), len(c.Stdin))
	}
	c = sh("exec true") // reads nothing of it
	c.Stdin = []byte(strings.Repeat("line\n", 100_000))
	if res := run(t, h, c); res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

// TestHostGivesNoEnvironmentOfItsOwn has a variable of this process not reach the command.
func TestHostGivesNoEnvironmentOfItsOwn(t *testing.T) {
	t.Setenv("TAPEDECK_TEST_SECRET", secret)
	h := newHost(t, &process.HostOptions{Env: map[string]string{"A": "host", "B": "host"}})
	c := sh("exec env")
	c.Env = map[string]string{"B": "command"}
	got := map[string]string{}
	for line := range strings.Lines(string(run(t, h, c).Stdout)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	home, tmp := got["HOME"], got["TMPDIR"]
	if filepath.Base(home) != "home" || filepath.Base(tmp) != "tmp" || home == os.Getenv("HOME") {
		t.Errorf("HOME=%s TMPDIR=%s", home, tmp)
	}
	for _, name := range []string{"HOME", "TMPDIR", "PWD", "_", "SHLVL", "OLDPWD"} { // a shell sets some of them
		delete(got, name)
	}
	if diff := cmp.Diff(map[string]string{"PATH": os.Getenv("PATH"), "GIT_OPTIONAL_LOCKS": "0", "A": "host", "B": "command"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestHostHasOneHome keeps what a command sets up there for the next one, and no longer than the host.
func TestHostHasOneHome(t *testing.T) {
	h := newHost(t, nil)
	run(t, h, sh("echo kept >$HOME/x; mkdir $TMPDIR/d; chmod 0 $TMPDIR/d; echo lost >y"))
	if res := run(t, h, sh("cat $HOME/x; cat y")); string(res.Stdout) != "kept\n" {
		t.Errorf("%+v", res)
	}
}

func TestHostSignal(t *testing.T) {
	res := run(t, newHost(t, nil), sh("echo first; kill -TERM $$"))
	if res.ExitCode != 143 || res.Signal != "SIGTERM" || string(res.Stdout) != "first\n" {
		t.Errorf("%+v", res)
	}
}

func TestHostNotStarted(t *testing.T) {
	h := newHost(t, &process.HostOptions{Fill: func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("no program"), 0o600)
	}})
	for program, want := range map[string]*process.Result{
		"nosuch-program": {ExitCode: 127, Failure: process.FailureNotFound, Stderr: []byte("nosuch-program: command not found\n")},
		"./nosuch":       {ExitCode: 127, Failure: process.FailureNotFound, Stderr: []byte("nosuch: command not found\n")},
		"./notes.txt":    {ExitCode: 126, Failure: process.FailureNotRun, Stderr: []byte("notes.txt: permission denied\n")},
		"notes.txt":      {ExitCode: 127, Failure: process.FailureNotFound, Stderr: []byte("notes.txt: command not found\n")},
	} {
		want.Passed = true
		if diff := cmp.Diff(want, run(t, h, &process.Command{Program: program})); diff != "" {
			t.Errorf("%s: %s", program, diff)
		}
	}
}

// fill puts a small tree into dir.
func fill(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "app", "empty"), 0o700); err != nil {
		return err
	}
	for name, perm := range map[string]os.FileMode{"a": 0o600, "b": 0o600, "app/run.sh": 0o700, "app/same": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho from $0 in ${PWD##*/}\n"), perm); err != nil {
			return err
		}
	}
	return nil
}

// TestHostChanges asks what became of the directory that a command has worked in.
func TestHostChanges(t *testing.T) {
	want := []process.Change{{Path: "b", Deleted: true}}
	h := newHost(t, &process.HostOptions{Fill: fill, Changes: func(dir string) ([]process.Change, error) {
		if b, err := os.ReadFile(filepath.Join(dir, "app", "new")); err != nil || string(b) != "new\n" {
			return nil, fmt.Errorf("%q: %w", b, err)
		}
		return want, nil
	}})
	c := sh(`./run.sh; echo new >new`)
	c.Cwd = in("app")
	res := run(t, h, c)
	if string(res.Stdout) != "from ./run.sh in app\n" {
		t.Errorf("%q %s", res.Stdout, res.Stderr)
	}
	if diff := cmp.Diff(want, res.Changes); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Run(context.Background(), sh("rm app/new")); err == nil || !strings.Contains(err.Error(), "what it left") {
		t.Error(err)
	}
}

func TestHostRefuses(t *testing.T) {
	h := newHost(t, &process.HostOptions{Fill: fill})
	for _, dir := range []string{"..", "/", "app/../../x", "nosuch", "a", ""} {
		c := sh("true")
		c.Cwd = in(dir)
		if res, err := h.Run(context.Background(), c); err == nil {
			t.Errorf("ran in %q: %+v", dir, res)
		}
	}
}

// TestHostBoundsOutput ends a program that writes without end, to either stream.
func TestHostBoundsOutput(t *testing.T) {
	h := newHost(t, &process.HostOptions{MaxOutput: 100_000})
	for stream, text := range map[string]string{"stdout": "exec yes", "stderr": "exec yes >&2"} {
		_, err := h.Run(context.Background(), sh(text))
		var over *process.OutputError
		if !errors.As(err, &over) || over.Stream != stream || over.Limit != 100_000 || !strings.Contains(err.Error(), stream) {
			t.Errorf("%s: %v", stream, err)
		}
	}
	if res := run(t, h, sh("head -c 100000 /dev/zero")); len(res.Stdout) != 100_000 {
		t.Errorf("%d bytes", len(res.Stdout))
	}
}

// alive reports whether a process is there.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X") // what nobody reaps is dead all the same
}

// gone waits until a process that was killed is no more.
func gone(t *testing.T, pid string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); alive(t, pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %s goes on", pid)
		}
	}
}

// TestHostEndsTheWholeGroup cancels a command that has a child, and ends one that leaves a child behind.
func TestHostEndsTheWholeGroup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	h := newHost(t, &process.HostOptions{Env: map[string]string{"PIDS": pids}, Linger: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends when the child has begun, or with the test's time
		for {
			if b, err := os.ReadFile(pids); err == nil && strings.HasSuffix(string(b), "\n") {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	res, err := h.Run(ctx, sh(`sleep 1000 & echo before; echo $! >$PIDS; wait`))
	if !errors.Is(err, context.Canceled) || res == nil || res.Failure != process.FailureCancelled || res.Signal != "SIGKILL" || res.ExitCode != 137 {
		t.Errorf("%+v, %v", res, err)
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, string(b))

	res = run(t, h, sh(`sleep 1000 >/dev/null 2>&1 & echo $!`))
	gone(t, string(res.Stdout))
	began := time.Now()
	res = run(t, h, sh(`sleep 1000 & echo $!`)) // holds the output open
	gone(t, string(res.Stdout))
	if took := time.Since(began); took > 60*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestHostMeasuresByTheClockItIsGiven gives 0 where it has none.
func TestHostMeasuresByTheClockItIsGiven(t *testing.T) {
	now := time.Duration(0)
	h := newHost(t, &process.HostOptions{Now: func() time.Duration { now += 7 * time.Second; return now }})
	if res := run(t, h, sh("true")); res.Duration != 7*time.Second || !res.Passed {
		t.Errorf("%+v", res)
	}
	if res := run(t, newHost(t, nil), sh("true")); res.Duration != 0 {
		t.Errorf("%+v", res)
	}
}

// TestHostIsClosed runs nothing any more.
func TestHostIsClosed(t *testing.T) {
	h := process.NewHost(&process.HostOptions{Dir: t.TempDir()})
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.Run(context.Background(), sh("true")); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestHostFilesThatCannotBePut is an error of the command.
func TestHostFilesThatCannotBePut(t *testing.T) {
	h := newHost(t, &process.HostOptions{Fill: func(string) error { return errFull }})
	if _, err := h.Run(context.Background(), sh("true")); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
