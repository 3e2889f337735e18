package jail

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal starts a shell script on a terminal and returns its jail and the terminal's other end.
func onTerminal(t *testing.T, background bool, script string) (*Jail, *screen) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no PTY here:", err)
	}
	t.Cleanup(func() { master.Close() })
	c := shellConfig(t, script)
	c.Stdin, c.Stdout, c.Stderr, c.TTY, c.Background = slave, slave, slave, 0, background
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	j, err := Start(ctx, c)
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	master.SetDeadline(time.Now().Add(20 * time.Second))
	return j, &screen{t: t, master: master}
}

// A screen is the other end of a program's terminal.
type screen struct {
	t      *testing.T
	master *os.File
	seen   string
}

// expect reads until text has been shown.
func (s *screen) expect(text string) {
	s.t.Helper()
	buf := make([]byte, 1000)
	for !strings.Contains(s.seen, text) {
		n, err := s.master.Read(buf)
		s.seen += string(buf[:n])
		if err != nil {
			s.t.Fatalf("waiting for %q: %v in %q", text, err, s.seen)
		}
	}
	_, s.seen, _ = strings.Cut(s.seen, text)
}

func wantStop(t *testing.T, j *Jail, want syscall.Signal) {
	t.Helper()
	select {
	case got := <-j.Stopped():
		if got != want {
			t.Fatalf("stopped by %v, want %v", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("not stopped by %v", want)
	}
}

func wantExit(t *testing.T, j *Jail, want Exit) {
	t.Helper()
	if x, err := j.Wait(); err != nil || x != want {
		t.Errorf("exit %+v, %v, want %+v", x, err, want)
	}
}

// TestCtrlZStopsTheProgram stops a program by a key, and continues it.
func TestCtrlZStopsTheProgram(t *testing.T) {
	t.Parallel()
	j, s := onTerminal(t, false, "echo ready; read x; echo got $x")
	s.expect("ready")
	io.WriteString(s.master, "\x1a")
	wantStop(t, j, syscall.SIGTSTP)
	if err := j.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	io.WriteString(s.master, "it\n")
	s.expect("got it")
	wantExit(t, j, Exit{})
}

// TestBackground starts a program that may write to its terminal and is stopped where it reads it, until it is given to it.
func TestBackground(t *testing.T) {
	t.Parallel()
	j, s := onTerminal(t, true, "echo ready; read x; echo got $x; echo more; stty -echo; echo set")
	s.expect("ready")
	wantStop(t, j, syscall.SIGTTIN)
	j.Foreground(true)
	j.Signal(syscall.SIGCONT)
	s.expect("") // nothing is shown by that alone
	j.Foreground(false)
	j.Foreground(true)
	j.Signal(syscall.SIGCONT) // it may have been stopped again in between
	io.WriteString(s.master, "it\n")
	s.expect("got it")
	s.expect("set")
	wantExit(t, j, Exit{})
}
