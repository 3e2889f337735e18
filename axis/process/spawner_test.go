package process_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// rig is a tape in memory with a clock that stands still until somebody waits.
type rig struct {
	out   bytes.Buffer
	store cas.Store
	rec   *tape.Recorder
	now   time.Duration
}

func newRig(t testing.TB, o *tape.RecorderOptions) *rig {
	t.Helper()
	r := &rig{store: cas.NewMemory()}
	w, err := tape.NewWriter(&r.out, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if o == nil {
		o = &tape.RecorderOptions{}
	}
	o.Store = r.store
	o.Now = func() (int64, int64) { return r.now.Milliseconds(), r.now.Milliseconds() }
	r.rec = tape.NewRecorder(w, o)
	return r
}

func (r *rig) wait(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Value(deadlineKey{}).(time.Duration); ok && r.now+d > deadline {
		r.now = deadline
		return context.DeadlineExceeded
	}
	r.now += d
	return nil
}

// deadlineKey is where a context of a test says until when, on the rig's clock, it lasts.
type deadlineKey struct{}

// tape returns the tape so far.
func (r *rig) tape(t testing.TB) *tape.Reader {
	t.Helper()
	if err := r.rec.Flush(); err != nil {
		t.Fatal(err)
	}
	in, err := tape.NewReader(bytes.NewReader(r.out.Bytes()), "tape")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// spawner returns one that records, and waits on the rig's clock.
func (r *rig) spawner(next process.Runner) *process.Spawner {
	s := process.NewSpawner(&process.SpawnerOptions{Runner: next, Wait: r.wait})
	s.Record(r.rec)
	return s
}

// taped answers from the tape so far.
func (r *rig) taped(t testing.TB, o *process.TapedOptions) *process.Taped {
	t.Helper()
	taped, err := process.NewTaped(r.tape(t).Records(), r.store, o)
	if err != nil {
		t.Fatal(err)
	}
	return taped
}

func in(dir string) *string { return &dir }

var gitCalls = []process.Call{
	{Program: "git", Args: []string{"status"}, Stdout: "clean\n", DurationMS: 42},
	{Program: "git", Args: []string{"push"}, Cwd: in("app"), Stderr: "no remote\n", ExitCode: 128, DurationMS: 1},
}

func TestPlayer(t *testing.T) {
	r := newRig(t, nil)
	player := process.NewPlayer(gitCalls, nil)
	s := r.spawner(player)
	ctx := context.Background()
	res, err := s.Run(ctx, &process.Command{Program: "git", Args: []string{"status"}, Cwd: in("anywhere"), Stdin: []byte("any")})
	if err != nil || string(res.Stdout) != "clean\n" || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if r.now != 42*time.Millisecond {
		t.Errorf("the clock went on by %v", r.now)
	}
	_, err = s.Run(ctx, &process.Command{Program: "git", Args: []string{"push", "-f"}})
	var mismatch *process.MismatchError
	if !errors.As(err, &mismatch) || mismatch.Number != 2 || !cmp.Equal(mismatch.Fields, []string{"args", "cwd"}) {
		t.Errorf("%+v", err)
	}
	want := "process: call 2: asked for git push -f; the process tape has git push (in app) (args and cwd differ); " +
		"change the one or the other, or record the process tape anew (--processes record=OUT, Config.Processes.Record)"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if first, unused := player.Unused(); first != 2 || len(unused) != 1 || unused[0].Args[0] != "push" {
		t.Error("unused:", first, unused)
	}
	if res, err = s.Run(ctx, &process.Command{Program: "git", Args: []string{"push"}, Cwd: in("app")}); err != nil || res.ExitCode != 128 {
		t.Errorf("after a mismatch: %+v, %v", res, err)
	}
	_, err = s.Run(ctx, &process.Command{Program: "ls"})
	var exhausted *process.ExhaustedError
	if !errors.As(err, &exhausted) || exhausted.Number != 3 || exhausted.Calls != 2 {
		t.Errorf("%+v", err)
	}
	want = "process: call 3: asked for ls; the process tape has 2 calls, which are used up; add this one, or record the process " +
		"tape anew (--processes record=OUT, Config.Processes.Record)"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if n := r.rec.Count(); n != 2 {
		t.Errorf("%d records of 2 commands that were answered", n)
	}
}

func TestRecordStandsAfterTheTimeOfTheAnswer(t *testing.T) {
	r := newRig(t, nil)
	s := r.spawner(process.NewPlayer(gitCalls, nil))
	if _, err := s.Run(context.Background(), &process.Command{Program: "git", Args: []string{"status"}}); err != nil {
		t.Fatal(err)
	}
	r.tape(t)
	want := `{"type":"record","seq":0,"phase":"user_script","virtual_time_ms":42,"monotonic_ms":42,"kind":{"kind":"process_spawn",` +
		`"program":"git","args":["status"],"cwd":null,"exit_code":0,"duration_ms":42,`
	if _, line, _ := strings.Cut(r.out.String(), "\n"); !strings.HasPrefix(line, want) {
		t.Errorf("got  %s\nwant %s…", line, want)
	}
}

// TestCutWaitUsesTheAnswerUp has a context end before the answer's time has passed: it is recorded whole, so that a replay is cut alike.
func TestCutWaitUsesTheAnswerUp(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.WithValue(context.Background(), deadlineKey{}, 10*time.Millisecond)
	ask := func(s *process.Spawner) {
		t.Helper()
		_, err := s.Run(ctx, &process.Command{Program: "git", Args: []string{"status"}})
		if !errors.Is(err, context.DeadlineExceeded) || r.now != 10*time.Millisecond {
			t.Errorf("%v at %v", err, r.now)
		}
	}
	ask(r.spawner(process.NewPlayer(gitCalls, nil)))
	taped := r.taped(t, nil)
	if n := r.rec.Count(); n != 1 {
		t.Fatalf("%d records", n)
	}
	first := r.out.String()
	r = newRig(t, nil)
	ask(r.spawner(taped))
	if r.tape(t); r.out.String() != first {
		t.Errorf("the replay's tape is another:\n%s%s", first, r.out.String())
	}
}

// TestTimeIsThatOfTheTape has an answer take whole milliseconds, as it will on a replay.
func TestTimeIsThatOfTheTape(t *testing.T) {
	r := newRig(t, nil)
	shared := &process.Result{Duration: 1999 * time.Microsecond}
	s := r.spawner(runner(func(context.Context, *process.Command) (*process.Result, error) { return shared, nil }))
	res, err := s.Run(context.Background(), &process.Command{Program: "a"})
	if err != nil || res.Duration != time.Millisecond || r.now != time.Millisecond || shared.Duration != 1999*time.Microsecond {
		t.Errorf("%+v, %v at %v", res, err, r.now)
	}
}

// script runs commands of every sort, and returns what came of them.
func script(t *testing.T, s *process.Spawner) (all []*process.Result) {
	t.Helper()
	for _, c := range []*process.Command{
		{Program: "git", Args: []string{"status"}},
		{Program: "git", Args: []string{"status"}}, // again, with another answer
		{Program: "git", Args: []string{"status"}, Cwd: in("app")},
		{Program: "cat", Stdin: []byte("one")},
		{Program: "cat", Stdin: []byte("two")},
		{Program: "c\xffat", Args: []string{"\xfe", "plain"}, Cwd: in("d\xff")},
		{Program: "yes"},
		{Program: "nosuch"},
	} {
		res, err := s.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, res)
	}
	return all
}

// answers gives each command another answer.
type answers struct{ n int }

func (a *answers) Run(_ context.Context, c *process.Command) (*process.Result, error) {
	a.n++
	res := &process.Result{Stdout: []byte(strings.Repeat("x", a.n)), Stderr: []byte("\xff"), Duration: time.Duration(a.n) * time.Millisecond}
	switch c.Program {
	case "yes":
		res = &process.Result{Stdout: bytes.Repeat([]byte("y\n"), 5000), ExitCode: 141, Signal: "SIGPIPE"}
	case "nosuch":
		res = &process.Result{ExitCode: 127, Failure: process.FailureNotFound}
	}
	return res, nil
}

func TestTaped(t *testing.T) {
	first := newRig(t, nil)
	want := script(t, first.spawner(&answers{}))
	taped := first.taped(t, nil)
	if len(taped.Unused()) != len(want) {
		t.Errorf("%d unused", len(taped.Unused()))
	}
	second := newRig(t, nil)
	got := script(t, second.spawner(taped))
	for i := range want {
		if len(want[i].Stderr) == 0 {
			want[i].Stderr = []byte{}
		}
		if len(want[i].Stdout) == 0 {
			want[i].Stdout = []byte{}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-recorded +replayed:\n%s", diff)
	}
	if second.tape(t); first.out.String() != second.out.String() {
		t.Errorf("the replay's tape is another:\n%s\n%s", first.out.String(), second.out.String())
	}
	if len(taped.Unused()) != 0 {
		t.Error("unused:", taped.Unused())
	}
}

func TestTapedRefuses(t *testing.T) {
	r := newRig(t, nil)
	script(t, r.spawner(&answers{}))
	taped := r.taped(t, nil)
	for _, test := range []struct {
		command *process.Command
		fields  []string
		text    string
	}{
		{&process.Command{Program: "git", Args: []string{"stash"}}, []string{"args"}, "nearest is record 0: git status (args differ)"},
		{&process.Command{Program: "cat", Stdin: []byte("three")}, []string{"stdin"}, "nearest is record 3: cat (stdin differs)"},
		{&process.Command{Program: "git", Args: []string{"status"}, Cwd: in("lib")}, []string{"cwd"}, "nearest is record 0: git status (cwd differs)"},
		{&process.Command{Program: "/bin/yes"}, []string{"program"}, "nearest is record 6: yes (program differs)"},
	} {
		_, err := taped.Run(context.Background(), test.command)
		var missing *process.NotTapedError
		if !errors.As(err, &missing) || !cmp.Equal(missing.Fields, test.fields) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("want %q, got %v", test.text, err)
		}
	}
	status := &process.Command{Program: "git", Args: []string{"status"}}
	for range 2 {
		if _, err := taped.Run(context.Background(), status); err != nil {
			t.Error(err)
		}
	}
	_, err := taped.Run(context.Background(), status)
	if err == nil || !strings.Contains(err.Error(), "it was recorded 2 times, last as record 1, and was asked for once more") {
		t.Error(err)
	}
	var missing *process.NotTapedError
	if !errors.As(err, &missing) || missing.Times != 2 || len(missing.Fields) != 0 {
		t.Errorf("%+v", missing)
	}
}

// TestTapedInOrder answers whatever is asked with the next record.
func TestTapedInOrder(t *testing.T) {
	r := newRig(t, nil)
	script(t, r.spawner(&answers{}))
	taped := r.taped(t, &process.TapedOptions{InOrder: true})
	for i := range 8 {
		res, err := taped.Run(context.Background(), &process.Command{Program: "something else"})
		if err != nil || i < 6 && len(res.Stdout) != i+1 {
			t.Errorf("%d: %+v, %v", i, res, err)
		}
	}
	if _, err := taped.Run(context.Background(), &process.Command{Program: "ls"}); err == nil || !strings.Contains(err.Error(), "ls") {
		t.Error(err)
	}
}

// TestTapedFindsWhatHeldASecret records a command without its secret, and answers it with.
func TestTapedFindsWhatHeldASecret(t *testing.T) {
	clean := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte("td_word_000000000001")) }
	r := newRig(t, &tape.RecorderOptions{Clean: clean})
	ask := func(s *process.Spawner) error {
		_, err := s.Run(context.Background(), &process.Command{
			Program: "curl", Args: []string{"-H", "Bearer " + secret}, Cwd: in("a" + secret), Stdin: []byte("more " + secret),
		})
		return err
	}
	if err := ask(r.spawner(&answers{})); err != nil {
		t.Fatal(err)
	}
	if r.tape(t); strings.Contains(r.out.String(), secret) {
		t.Errorf("the secret is on the tape: %s", r.out.String())
	}
	if err := ask(newRig(t, nil).spawner(r.taped(t, &process.TapedOptions{Clean: clean}))); err != nil {
		t.Error(err)
	}
	if err := ask(newRig(t, nil).spawner(r.taped(t, nil))); err == nil {
		t.Error("found without being cleaned")
	}
}

// TestTapedLostAPayload is told by the record, and not by silence.
func TestTapedLostAPayload(t *testing.T) {
	r := newRig(t, nil)
	script(t, r.spawner(&answers{}))
	r.store = cas.NewMemory()
	_, err := r.taped(t, nil).Run(context.Background(), &process.Command{Program: "yes"})
	var missing *cas.MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "record 6") {
		t.Error(err)
	}
}

// TestTapedCancelled ends as it did then, from an event tape and from a process tape.
func TestTapedCancelled(t *testing.T) {
	r := newRig(t, nil)
	cut := runner(func(context.Context, *process.Command) (*process.Result, error) {
		return &process.Result{ExitCode: 137, Signal: "SIGKILL", Failure: process.FailureCancelled, Passed: true}, context.Canceled
	})
	c := &process.Command{Program: "sleep", Args: []string{"100"}}
	keeper := process.NewCalls(cut)
	if _, err := r.spawner(keeper).Run(context.Background(), c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, source := range []process.Runner{r.taped(t, nil), process.NewPlayer(keeper.Calls(), nil)} {
		again := newRig(t, nil)
		if _, err := again.spawner(source).Run(context.Background(), c); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if again.tape(t); again.out.String() != r.out.String() || again.rec.Count() != 1 {
			t.Errorf("the replay's tape is another:\n%s\n%s", r.out.String(), again.out.String())
		}
	}
}

type runner func(ctx context.Context, c *process.Command) (*process.Result, error)

func (f runner) Run(ctx context.Context, c *process.Command) (*process.Result, error) {
	return f(ctx, c)
}

func TestDenied(t *testing.T) {
	s := process.NewSpawner(nil)
	_, err := s.Run(context.Background(), &process.Command{Program: "rm", Args: []string{"-rf", "/ etc"}})
	var denied *process.DeniedError
	if !errors.As(err, &denied) || denied.Command.Program != "rm" {
		t.Fatal(err)
	}
	for _, want := range []string{"rm -rf '/ etc'", "--processes TAPE", "Config.Processes.Live"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
}

func TestCommandsThatCannotBe(t *testing.T) {
	s := process.NewSpawner(&process.SpawnerOptions{Runner: &answers{}})
	for _, c := range []*process.Command{
		{}, {Program: "a\x00b"}, {Program: "a", Args: []string{"\x00"}}, {Program: "a", Cwd: in("\x00")},
		{Program: "a", Env: map[string]string{"A": "\x00"}},
	} {
		if _, err := s.Run(context.Background(), c); err == nil {
			t.Errorf("%q ran", c)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errFull)
	if _, err := s.Run(ctx, &process.Command{Program: "a"}); !errors.Is(err, context.Canceled) || !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func TestCommandForPeople(t *testing.T) {
	for want, c := range map[string]*process.Command{
		`git commit -m 'it'\''s done' (in 'my app')`: {Program: "git", Args: []string{"commit", "-m", "it's done"}, Cwd: in("my app")},
		`echo '' "a\nb" "\xff"`:                      {Program: "echo", Args: []string{"", "a\nb", "\xff"}},
		`ls Ünïcode/x.go '*'`:                        {Program: "ls", Args: []string{"Ünïcode/x.go", "*"}},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	long := &process.Command{Program: "echo"}
	for range 1000 {
		long.Args = append(long.Args, strings.Repeat("ä", 1000))
	}
	if n := len(long.String()); n > 1000 {
		t.Errorf("%d bytes", n)
	}
}

// TestCmd is what a Go program does with package os/exec.
func TestCmd(t *testing.T) {
	calls := []process.Call{
		{Program: "git", Args: []string{"log"}, Cwd: in("app"), Stdout: "one\n", Stderr: "warning\n"},
		{Program: "git", Args: []string{"push"}, Stdout: "out ", Stderr: "rejected\n", ExitCode: 1},
		{Program: "git", Args: []string{"push"}, Stdout: "out ", Stderr: "rejected\n", ExitCode: 1},
		{Program: "sleep", Args: []string{"9"}, ExitCode: 143, Signal: "SIGTERM"},
		{Program: "nosuch", ExitCode: 127, Failure: process.FailureNotFound},
		{Program: "notes.txt", ExitCode: 126, Failure: process.FailureNotRun, Stderr: "notes.txt: permission denied\n"},
	}
	s := process.NewSpawner(&process.SpawnerOptions{Runner: process.NewPlayer(calls, nil)})
	ctx := context.Background()

	cmd := s.Command(ctx, "git", "log")
	cmd.Dir = "app"
	if out, err := cmd.Output(); string(out) != "one\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if err := cmd.Run(); err == nil {
		t.Error("ran twice")
	}
	_, err := s.Command(ctx, "git", "push").Output()
	var exit *process.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || string(exit.Stderr) != "rejected\n" || err.Error() != "exit status 1" {
		t.Errorf("%#v", err)
	}
	out, err := s.Command(ctx, "git", "push").CombinedOutput()
	if string(out) != "out rejected\n" || !errors.As(err, &exit) {
		t.Errorf("%q, %v", out, err)
	}
	if err := s.Command(ctx, "sleep", "9").Run(); !errors.As(err, &exit) || exit.ExitCode() != -1 || err.Error() != "signal: SIGTERM" {
		t.Errorf("%#v", err)
	}
	if err := s.Command(ctx, "nosuch").Run(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%#v", err)
	}
	var not *exec.Error
	if err := s.Command(ctx, "notes.txt").Run(); !errors.As(err, &not) || not.Name != "notes.txt" {
		t.Errorf("%#v", err)
	}
	var exhausted *process.ExhaustedError
	if err := s.Command(ctx, "ls").Run(); !errors.As(err, &exhausted) {
		t.Errorf("%#v", err)
	}
}

// TestCmdPassesOn gives the command what the fields say.
func TestCmdPassesOn(t *testing.T) {
	var got *process.Command
	s := process.NewSpawner(&process.SpawnerOptions{Runner: runner(func(_ context.Context, c *process.Command) (*process.Result, error) {
		got = c.Clone()
		return &process.Result{Stdout: []byte("o"), Stderr: []byte("e")}, nil
	})})
	cmd := s.Command(context.Background(), "sort", "-u")
	cmd.Args = append(cmd.Args, "-r")
	cmd.Env = []string{"A=1", "B=x=y", "A=2"}
	cmd.Stdin = strings.NewReader("b\na\n")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	want := &process.Command{Program: "sort", Args: []string{"-u", "-r"}, Env: map[string]string{"A": "2", "B": "x=y"}, Stdin: []byte("b\na\n")}
	if diff := cmp.Diff(want, got); diff != "" || stdout.String() != "o" || stderr.String() != "e" {
		t.Errorf("%s%q %q", diff, stdout.String(), stderr.String())
	}
	cmd = s.Command(context.Background(), "sort")
	cmd.Env = []string{"A"}
	if err := cmd.Run(); err == nil || !strings.Contains(err.Error(), "NAME=VALUE") {
		t.Error(err)
	}
	cmd = s.Command(context.Background(), "sort")
	cmd.Stdout = io.Discard
	if _, err := cmd.Output(); err == nil {
		t.Error("Stdout was set")
	}
}

// TestChangesOfACommand makes what a command changed true of the files, from each source, and has the tape name it.
func TestChangesOfACommand(t *testing.T) {
	changes := []process.Change{
		{Path: "a", Content: []byte("\xff"), Perm: 0o755},
		{Path: "b", Deleted: true},
		{Path: "c", Content: []byte("text"), Perm: 0o644},
		{Path: "d", Target: "c"},
	}
	live := runner(func(context.Context, *process.Command) (*process.Result, error) {
		return &process.Result{Changes: changes}, nil
	})
	first := newRig(t, nil)
	var applied []process.Change
	begin := func(r *rig, next process.Runner) *process.Spawner {
		s := process.NewSpawner(&process.SpawnerOptions{Runner: next, Apply: func(spawn uint64, changes []process.Change) error {
			applied = changes
			return recordChanges(r.rec, spawn, changes)
		}})
		s.Record(r.rec)
		return s
	}
	keeper := process.NewCalls(live)
	run := func(name string, r *rig, next process.Runner) {
		applied = nil
		if _, err := begin(r, next).Run(context.Background(), &process.Command{Program: "make"}); err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(changes, applied); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if r.tape(t); r.out.String() != first.out.String() {
			t.Errorf("%s: another tape:\n%s\n%s", name, first.out.String(), r.out.String())
		}
	}
	run("live", first, keeper)
	run("tape", newRig(t, nil), first.taped(t, nil))
	calls, err := process.ReadCalls(strings.NewReader(written(t, keeper.Calls())), "kept")
	if err != nil {
		t.Fatal(err)
	}
	run("process tape", newRig(t, nil), process.NewPlayer(calls, nil))
}

// recordChanges records as a tree of files would.
func recordChanges(rec *tape.Recorder, spawn uint64, changes []process.Change) error {
	for _, c := range changes {
		f := tape.File{Path: c.Path, SpawnID: spawn}
		if c.Deleted {
			if err := rec.Record(&tape.FileDelete{File: f}); err != nil {
				return err
			}
			continue
		}
		f.Mode = map[bool]string{true: "100755", false: "100644"}[c.Perm&0o100 != 0]
		content := c.Content
		if c.Target != "" {
			f.Mode, content = "120000", []byte(c.Target)
		}
		var err error
		if f.Content, err = rec.Payload(content); err != nil {
			return err
		}
		f.ContentHash, f.LenBytes = f.Content.Hash, f.Content.Len
		if err := rec.Record(&tape.FileWrite{File: f}); err != nil {
			return err
		}
	}
	return nil
}

// TestKeeper keeps in the order in which commands were asked for, whichever ends first.
func TestKeeper(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	keeper := process.NewCalls(runner(func(_ context.Context, c *process.Command) (*process.Result, error) {
		switch c.Program {
		case "slow":
			close(begun)
			<-proceed
		case "bad":
			return nil, io.ErrUnexpectedEOF
		}
		return &process.Result{Stdout: []byte(c.Program), Duration: 1500 * time.Microsecond}, nil
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := keeper.Run(context.Background(), &process.Command{Program: "slow"}); err != nil {
			t.Error(err)
		}
	}()
	<-begun
	if _, err := keeper.Run(context.Background(), &process.Command{Program: "bad"}); err == nil {
		t.Error("no error")
	}
	if _, err := keeper.Run(context.Background(), &process.Command{Program: "fast", Env: map[string]string{"A": "1"}}); err != nil {
		t.Error(err)
	}
	close(proceed)
	<-done
	want := []process.Call{
		{Program: "slow", Stdout: "slow", DurationMS: 1},
		{Program: "fast", Stdout: "fast", DurationMS: 1, Env: map[string]string{"A": "1"}},
	}
	if diff := cmp.Diff(want, keeper.Calls()); diff != "" {
		t.Error(diff)
	}
}
