package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Check is how a command ended over the work tree as a run left it.
type Check struct {
	Command  string `json:"command"`
	Recorded bool   `json:"recorded,omitempty"` // it was run when the fork was made, and is not run again
	Exit     int    `json:"exit"`               // 128+n on death by signal n; -1 where it did not run
	TimedOut bool   `json:"timed_out"`          // it was ended, with all that it had started
	Why      string `json:"why,omitempty"`      // why it did not run
	Output   string `json:"output,omitempty"`   // the end of what it wrote, where it did not pass
	TookMS   int64  `json:"took_ms"`
}

// Passed reports whether the command ended with 0.
func (c *Check) Passed() bool { return c.Exit == 0 && !c.TimedOut && c.Why == "" }

// maxOutput is how much of what a command wrote last is kept, in bytes.
const maxOutput = 4 << 10

// check runs the command over the end state of a recording. The error is ctx's, or that of the temporary directory; what keeps one
// recording from being checked is in its Check.
func (o *Options) check(ctx context.Context, rec *recording.Recording) (*Check, error) {
	lock, temp, err := recording.LockedTemp(os.TempDir(), library.CheckPrefix)
	if err != nil {
		return nil, err
	}
	defer func() {
		os.RemoveAll(temp)
		if lock != nil {
			lock.Close()
		}
	}()
	dir := filepath.Join(temp, "tree")
	leftOut, err := derive.RestoreEnd(rec, dir)
	if err != nil {
		return &Check{Command: o.Verify, Exit: -1, Why: err.Error()}, nil
	}
	c, err := o.runIn(ctx, dir)
	if err == nil && !c.Passed() && len(leftOut) > 0 {
		c.Output += fmt.Sprintf("(files with secrets are not there: %s)\n", strings.Join(leftOut, ", "))
	}
	return c, err
}

// runIn runs the command in a directory. What it has started ends with it.
func (o *Options) runIn(ctx context.Context, dir string) (*Check, error) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
	defer cancel()
	var out tail
	cmd := exec.CommandContext(limited, "sh", "-c", o.Verify)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Second
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
	c := &Check{Command: o.Verify, TimedOut: limited.Err() != nil, TookMS: time.Since(begun).Milliseconds()}
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState == nil:
		c.Exit, c.Why = -1, err.Error()
	case errors.As(err, &exit):
		e := procgroup.ExitOf(exit.ProcessState)
		c.Exit = e.Code
		if e.Signal != 0 {
			c.Exit = 128 + int(e.Signal)
		}
	}
	if !c.Passed() {
		c.Output = out.String()
	}
	return c, nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxOutput; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.b), "\uFFFD") }
