// Package endcheck runs a command over the work tree as a run left it, and says how it ended.
package endcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// DefaultTimeout is how long a command may run.
const DefaultTimeout = 5 * time.Minute

// maxOutput is how much of what a command wrote last is kept, in bytes.
const maxOutput = 4 << 10

// A Command is one for sh. The zero value of each field but the first works.
type Command struct {
	Line    string
	Env     []string      // nil is that of the process
	Timeout time.Duration // 0 is DefaultTimeout
	Output  io.Writer     // gets what it writes; nil is nobody
	LeftOut []string      // files of the work tree that are not in the directory, as they hold secrets
}

// Run runs the command in a directory. What it has started ends with it. The error is ctx's; what else keeps it from running is in the Check.
func (c *Command) Run(ctx context.Context, dir string) (*recording.Check, error) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	var kept Tail
	var out io.Writer = &kept
	if c.Output != nil {
		out = io.MultiWriter(&kept, c.Output)
	}
	cmd := exec.CommandContext(limited, "sh", "-c", c.Line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, c.Env, out, out, time.Second
	procgroup.Own(cmd, -1)
	cmd.Cancel = func() error { return procgroup.Kill(cmd.Process.Pid) }
	begun := time.Now()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = procgroup.Kill(cmd.Process.Pid) // what it left behind
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	made := &recording.Check{Command: c.Line, TimedOut: limited.Err() != nil, TookMS: time.Since(begun).Milliseconds()}
	made.Exit, made.Why = exitOf(cmd, err)
	if made.Passed() {
		return made, nil
	}
	if made.Output = kept.String(); len(c.LeftOut) > 0 {
		made.Output += fmt.Sprintf("(files with secrets are not there: %s)\n", strings.Join(c.LeftOut, ", "))
	}
	return made, nil
}

// exitOf is how a command ended, of which Run returned err.
func exitOf(cmd *exec.Cmd, err error) (exit int, why string) {
	var failed *exec.ExitError
	switch {
	case cmd.ProcessState == nil:
		return -1, err.Error()
	case !errors.As(err, &failed):
		return 0, ""
	}
	e := procgroup.ExitOf(failed.ProcessState)
	if e.Signal != 0 {
		return 128 + int(e.Signal), ""
	}
	return e.Code, ""
}

// A Tail keeps the end of what is written to it, as valid UTF-8.
type Tail struct{ b []byte }

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxOutput; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *Tail) String() string { return strings.ToValidUTF8(string(t.b), "\uFFFD") }
