package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Cmd is a command as package os/exec has it, which a Spawner runs. The fields may be set until it runs, and it runs once.
//
// It differs from an exec.Cmd in this: the environment is empty and not the caller's; Dir is a directory of the files that the
// command sees; there is no Start, for a command is answered whole; of CombinedOutput what went to stderr stands behind what went to
// stdout, for no tape tells how they met.
type Cmd struct {
	Path   string   // the program
	Args   []string // the program's name, then its arguments
	Dir    string   // "" is the top of the files
	Env    []string // NAME=VALUE; of equal names the last counts
	Stdin  io.Reader
	Stdout io.Writer // nil: what is written there is dropped
	Stderr io.Writer

	Result *Result // what became of it, once it ran

	ctx     context.Context
	spawner *Spawner
	ran     bool
}

// Command returns the Cmd of a program with arguments, in the place of exec.CommandContext.
func (s *Spawner) Command(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{Path: name, Args: append([]string{name}, args...), ctx: ctx, spawner: s}
}

// String is c for people.
func (c *Cmd) String() string { return (&Command{Program: c.Path, Args: c.arguments()}).String() }

func (c *Cmd) arguments() []string {
	if len(c.Args) == 0 {
		return nil
	}
	return c.Args[1:]
}

// Run runs c. The error is an *ExitError for a program that exited with another status than 0, an *exec.Error for one that could not
// be started (of exec.ErrNotFound, where it is not there), and else what Spawner.Run says or a writer gave.
func (c *Cmd) Run() error {
	if c.ran {
		return errors.New("process: a Cmd runs once; make another by Spawner.Command")
	}
	c.ran = true
	cmd, err := c.command()
	if err != nil {
		return err
	}
	if c.Result, err = c.spawner.Run(c.ctx, cmd); err != nil {
		return err
	}
	if err := errors.Join(give(c.Stdout, c.Result.Stdout), give(c.Stderr, c.Result.Stderr)); err != nil {
		return err
	}
	return c.failed()
}

// command is what is asked of the spawner.
func (c *Cmd) command() (*Command, error) {
	cmd := &Command{Program: c.Path, Args: c.arguments()}
	if c.Dir != "" {
		dir := filepath.ToSlash(c.Dir)
		cmd.Cwd = &dir
	}
	for _, pair := range c.Env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("process: %s: Env holds %q, where NAME=VALUE was expected", c, pair)
		}
		if cmd.Env == nil {
			cmd.Env = make(map[string]string)
		}
		cmd.Env[name] = value
	}
	if c.Stdin == nil {
		return cmd, nil
	}
	b, err := io.ReadAll(io.LimitReader(c.Stdin, maxStdin+1))
	if err != nil {
		return nil, fmt.Errorf("process: %s: its stdin: %w", c, err)
	}
	if len(b) > maxStdin {
		return nil, fmt.Errorf("process: %s: its stdin has more than %d bytes", c, maxStdin)
	}
	cmd.Stdin = b
	return cmd, nil
}

// maxStdin bounds the stdin of a Cmd, in bytes, as the host bounds what it writes.
const maxStdin = DefaultMaxOutput

// give writes b where somebody wants it.
func give(w io.Writer, b []byte) error {
	if w == nil || len(b) == 0 {
		return nil
	}
	_, err := w.Write(b)
	return err
}

// failed is the error of a program that did not end well.
func (c *Cmd) failed() error {
	switch res := c.Result; {
	case res.Failure == FailureNotFound:
		return &exec.Error{Name: c.Path, Err: exec.ErrNotFound}
	case res.Failure == FailureNotRun:
		return &exec.Error{Name: c.Path, Err: errors.New(strings.TrimSpace(string(res.Stderr)))}
	case res.ExitCode != 0 || res.Signal != "":
		return &ExitError{Result: res}
	}
	return nil
}

// Output runs c and returns what it wrote to stdout. The Stderr of an *ExitError holds what it wrote there, unless c.Stderr is set.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("process: Stdout is set already; Output gives it back")
	}
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	var exit *ExitError
	if c.Stderr == nil && errors.As(err, &exit) {
		exit.Stderr = exit.Result.Stderr
	}
	return out.Bytes(), err
}

// CombinedOutput runs c and returns what it wrote to stdout and then what it wrote to stderr.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("process: Stdout or Stderr is set already; CombinedOutput gives them back")
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}

// An ExitError is a program that ended with another status than 0.
type ExitError struct {
	Result *Result
	Stderr []byte // of Output: see there
}

// ExitCode is the status that the program exited with, and -1 of one that a signal ended, as os/exec has it.
func (e *ExitError) ExitCode() int {
	if e.Result.Signal != "" {
		return -1
	}
	return e.Result.ExitCode
}

// Error implements error, in the words of os/exec where it can.
func (e *ExitError) Error() string {
	if e.Result.Signal != "" {
		return "signal: " + e.Result.Signal
	}
	return fmt.Sprintf("exit status %d", e.Result.ExitCode)
}
