package jail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/jailtest"
)

// helperVar makes the test binary a helper instead of a test: its value names the helper, the arguments are its own.
const helperVar = "JAIL_TEST_HELPER"

func TestMain(m *testing.M) {
	Enter()
	if name := os.Getenv(helperVar); name != "" {
		syscall.Exit(helpers[name](os.Args[1:])) // at once: with the race detector os.Exit sleeps for a second
	}
	jailtest.OwnMounts()
	os.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH")) // before a version manager's shims, which start many programs for one
	os.Exit(m.Run())
}

// helperConfig runs a helper of this binary inside.
func helperConfig(t testing.TB, name string, args ...string) *Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Config{
		Path: exe, Argv: append([]string{"helper"}, args...), Dir: "/", TTY: -1,
		Env: []string{helperVar + "=" + name, "PATH=" + os.Getenv("PATH"), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR")},
	}
}

func shellConfig(t testing.TB, script string) *Config {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	return &Config{Path: sh, Argv: []string{"sh", "-c", script}, Dir: "/", TTY: -1, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// A result is what a program left behind.
type result struct {
	exit           Exit
	stdout, stderr string
	refusals       []Refusal
}

// run runs c to its end, with pipes for its output, and calls serve, if any, before the program starts.
func run(t testing.TB, c *Config, serve func(*Jail)) result {
	t.Helper()
	var out, errs bytes.Buffer
	stdout, waitOut := pipeTo(t, &out)
	stderr, waitErr := pipeTo(t, &errs)
	c.Stdout, c.Stderr = stdout, stderr
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // for what hangs alone: a busy machine is slow
	defer cancel()
	j, err := Start(ctx, c)
	stdout.Close()
	stderr.Close()
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	defer j.Close()
	if serve != nil {
		serve(j)
	}
	if err := j.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
	exit, err := j.Wait()
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	j.StopNetwork()
	waitOut()
	waitErr()
	r := result{exit: exit, stdout: out.String(), stderr: errs.String()}
	for x := range j.Refusals() {
		r.refusals = append(r.refusals, x)
	}
	return r
}

func pipeTo(t testing.TB, buf *bytes.Buffer) (w *os.File, wait func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		io.Copy(buf, r)
	}()
	return w, func() { <-done }
}

// want fails the test unless the program printed exactly this and ended well.
func (r result) want(t testing.TB, stdout string) {
	t.Helper()
	if r.exit != (Exit{}) || r.stdout != stdout {
		t.Errorf("exit %+v\nstdout %q\nwant   %q\nstderr %s", r.exit, r.stdout, stdout, r.stderr)
	}
}

// testDir is a temporary directory without symbolic links in its path.
func testDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustWrite(t testing.TB, path, data string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// accept answers connections of l with the address that they reached, until the jail closes it.
func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(c, c.LocalAddr().String())
		c.Close()
	}
}
