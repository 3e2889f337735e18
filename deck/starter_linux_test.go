package deck_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/program"
)

// shownSoFar collects what a session shows.
type shownSoFar struct {
	mu   sync.Mutex
	more *sync.Cond
	buf  bytes.Buffer
}

func newShown() *shownSoFar {
	s := new(shownSoFar)
	s.more = sync.NewCond(&s.mu)
	return s
}

// Write implements io.Writer.
func (s *shownSoFar) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more.Broadcast()
	return s.buf.Write(p)
}

// expect waits until text was shown. A test that waits for ever is ended by its own limit.
func (s *shownSoFar) expect(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.buf.String(), text) {
		s.more.Wait()
	}
}

// expectOf does what is to show text until it does: a shell may look for signals just before one comes, and then wait for a key.
func (s *shownSoFar) expectOf(text string, do func()) {
	for shown := false; !shown; {
		do()
		late := false
		stop := time.AfterFunc(5*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			late = true
			s.more.Broadcast()
		})
		s.mu.Lock()
		for shown = strings.Contains(s.buf.String(), text); !shown && !late; shown = strings.Contains(s.buf.String(), text) {
			s.more.Wait()
		}
		s.mu.Unlock()
		stop.Stop()
	}
}

// TestJailStarter runs a session in the jail: what it sees of the machine, what it may change, keys, sizes, signals, Ctrl-Z, a
// job that it leaves, its end.
func TestJailStarter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	marker := filepath.Join(b.home, "made")
	out := newShown()
	s, err := terminal.StartSession(t.Context(), &terminal.SessionOptions{
		Argv: []string{"sh", "-c", `echo x >` + marker + ` || echo read-only; echo y >here; stty size; tty; trap 'stty size; echo resized' WINCH
			trap 'echo interrupted $n' INT; n=0; echo ready; while [ $n -lt 2 ]; do read x && n=$((n+1)) && echo "got $x"; done
			cat; sleep 3600 & exit 6`},
		Env: []string{"PATH"}, Dir: b.dir, Size: terminal.Size{Rows: 11, Cols: 44}, Output: out, Blind: true,
		Starter: &deck.JailStarter{Writable: []string{b.dir}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out.expect("read-only")
	out.expect("11 44")
	out.expect("/dev/console")
	out.expect("ready")
	out.expectOf("12 55\r\nresized", func() {
		s.Resize(terminal.Size{Rows: 11, Cols: 55})
		s.Resize(terminal.Size{Rows: 12, Cols: 55})
	})
	out.expectOf("interrupted 0", func() { s.Key("ctrl-c") })
	s.Type("one\n")
	out.expect("got one")
	out.expectOf("interrupted 1", func() { s.Signal(syscall.SIGINT) })
	s.Key("ctrl-z") // nobody looks after it: it goes on
	s.Type("two\n")
	out.expect("got two")
	s.Key("ctrl-d")
	exit, err := s.Wait(t.Context())
	if err != nil || exit.Code != 6 || exit.Held {
		t.Errorf("%+v, %v", exit, err)
	}
	if got, err := os.ReadFile(filepath.Join(b.dir, "here")); string(got) != "y\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it changed what it may not")
	}
}

// TestJailStarterEnds closes a session in the jail whose program ignores SIGHUP.
func TestJailStarterEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out := newShown()
	s, err := terminal.StartSession(t.Context(), &terminal.SessionOptions{
		Argv: []string{"sh", "-c", "trap '' HUP; echo ready; while :; do sleep 60; done"}, Dir: b.dir,
		Output: out, Blind: true, Grace: 100 * time.Millisecond, Starter: new(deck.JailStarter),
	})
	if err != nil {
		t.Fatal(err)
	}
	out.expect("ready")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if exit, err := s.Wait(context.Background()); !exit.Killed || exit.Signal != "SIGKILL" {
		t.Errorf("%+v, %v", exit, err)
	}
	_, err = terminal.StartSession(t.Context(), &terminal.SessionOptions{Argv: []string{"/no/such"}, Starter: new(deck.JailStarter)})
	var missing *program.NotFoundError
	if !errors.As(err, &missing) {
		t.Error(err)
	}
}

// TestJailStarterUnprivileged does the same as a user who is not root, where the caller is.
func TestJailStarterUnprivileged(t *testing.T) {
	runAsNobody(t, "^TestJailStarter(Ends)?$", 2, nil)
}

const nobody = 65534

// runAsNobody runs so many tests of this program, those of a pattern, as a user who is not root, in a directory of their own. prepare, which may be
// nil, fills that and returns what their environment has beside.
func runAsNobody(t *testing.T, pattern string, tests int, prepare func(dir string) []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: the tests have run so already")
	}
	dir, err := os.MkdirTemp("", "tapedeck-nobody-") // outside t.TempDir, whose path is not readable by everyone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "deck.test")
	copyProgram(t, binary)
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	if prepare != nil {
		env = append(env, prepare(dir)...)
	}
	cmd := exec.Command(binary, "-test.run", pattern, "-test.v", "-test.timeout", "2m")
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	report, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, report)
	case bytes.Contains(report, []byte("--- SKIP")):
		t.Skipf("the jail does not work for everyone here\n%s", report)
	case bytes.Count(report, []byte("--- PASS")) != tests:
		t.Errorf("%s", report)
	}
}

// copyProgram copies the program that runs.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, to, content)
}

// writeProgram writes what is executed next. While it does no process is forked, which would hold the file open for writing until it executes
// something else: nobody can execute it till then.
func writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
