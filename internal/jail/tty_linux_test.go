package jail

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestTerminal(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no PTY here:", err)
	}
	defer master.Close()
	c := shellConfig(t, "")
	c.Path, c.Argv = bash, []string{"bash", "--norc", "--noprofile", "-i"}
	c.Env = append(c.Env, "PS1=", "TERM=dumb")
	c.Stdin, c.Stdout, c.Stderr, c.TTY = slave, slave, slave, 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	j, err := Start(ctx, c)
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	master.SetDeadline(time.Now().Add(20 * time.Second))
	lines := bufio.NewReader(master)
	say := func(s string) { io.WriteString(master, s) }
	expect := func(want string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if strings.TrimRight(line, "\r\n") == want {
				return
			}
			if err != nil {
				t.Fatalf("waiting for %q: %v (%q)", want, err, line)
			}
		}
	}
	say("stty -echo; echo set''up\n")
	expect("setup")
	say("tty; echo x >/dev/tty\n")
	expect("/dev/console")
	expect("x")
	// Ctrl-C ends the foreground job and not the shell.
	say("sh -c 'echo go; exec sleep 3600'\n")
	expect("go")
	say("\x03")
	say("echo after\n")
	expect("after")
	// A job can be stopped and comes back.
	say("(echo job; sleep 3600)\n")
	expect("job")
	say("\x1a")
	say("jobs %1 >/dev/null && echo stopped; kill -KILL %1; echo done\n")
	expect("stopped")
	expect("done")
	say("exit 3\nexit 3\n") // the first may only warn of the job
	if x, err := j.Wait(); err != nil || x.Code != 3 {
		t.Errorf("exit %+v, %v", x, err)
	}
}
