package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Command is one program that is to run.
type Command struct {
	Program string
	Args    []string          // without the program's name
	Cwd     *string           // within the files that it sees, with /; nil is their top
	Env     map[string]string // what it gets beside what every command does; on no event tape
	Stdin   []byte            // nil and empty are none
}

// A Result is what became of a Command.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int    // 128+n on death by signal n, 127 for a program that is not there, 126 for one that cannot run
	Signal         string // "SIGTERM"; "" for none
	Duration       time.Duration
	// Passed says that Duration has gone by already, for the command really ran. That of an answer is still to be waited.
	Passed bool
	// Failure says why no program ran to its own end: FailureNotFound, FailureNotRun, FailureCancelled; "" where one did.
	Failure string
	// Changes are the files that the command changed, by path: Spawner applies them.
	Changes []Change
}

// The reasons of Result.Failure.
const (
	FailureNotFound  = "not found"  // no such program; ExitCode is 127, and Stderr says so, as a shell does
	FailureNotRun    = "cannot run" // it is there, and no program; ExitCode is 126
	FailureCancelled = "cancelled"  // ended because its context was
)

// A Runner runs commands, or answers them. It may be used by several goroutines at once.
//
// A program that exits with another status than 0 is a Result and no error. An error is that nothing can be said about the command; a
// Result beside one is what is known of a command that was cut short, for who records it.
type Runner interface {
	Run(ctx context.Context, c *Command) (*Result, error)
}

// Clone returns a copy that shares nothing with c.
func (c *Command) Clone() *Command {
	out := &Command{Program: c.Program, Args: slices.Clone(c.Args), Env: maps.Clone(c.Env), Stdin: slices.Clone(c.Stdin)}
	if c.Cwd != nil {
		cwd := *c.Cwd
		out.Cwd = &cwd
	}
	return out
}

// shownLen bounds, in bytes, a command in a message.
const shownLen = 300

// String is c for people: the words as a shell takes them, and where it runs. What is long is cut.
func (c *Command) String() string {
	var b strings.Builder
	b.WriteString(word(c.Program))
	for _, a := range c.Args {
		if b.Len() > shownLen {
			b.WriteString(" …")
			break
		}
		b.WriteByte(' ')
		b.WriteString(word(a))
	}
	if c.Cwd != nil {
		b.WriteString(" (in " + word(*c.Cwd) + ")")
	}
	return b.String()
}

// word is s as a word of a shell, but what cannot be printed.
func word(s string) string {
	if len(s) > shownLen {
		s = strings.ToValidUTF8(s[:shownLen], "") + "…"
	}
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:=@%+,…~^", r)
	}
	switch {
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return strconv.Quote(s)
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0:
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// differing lists the fields in which what was asked is not what stands there.
func differing(asked, has *Command, stdin bool) []string {
	var fields []string
	if asked.Program != has.Program {
		fields = append(fields, "program")
	}
	if !slices.Equal(asked.Args, has.Args) {
		fields = append(fields, "args")
	}
	if a, b := asked.Cwd, has.Cwd; a != b && (a == nil || b == nil || *a != *b) {
		fields = append(fields, "cwd")
	}
	if stdin && string(asked.Stdin) != string(has.Stdin) {
		fields = append(fields, "stdin")
	}
	return fields
}

// check refuses what no program can be started with.
func (c *Command) check() error {
	switch {
	case c.Program == "":
		return errors.New("process: a command needs a program, and its name is empty")
	case c.hasNUL():
		return fmt.Errorf("process: %s: a NUL byte stands in the command, which no program can be given", c)
	}
	return nil
}

func (c *Command) hasNUL() bool {
	all := append([]string{c.Program}, c.Args...)
	for name, value := range c.Env {
		all = append(all, name, value)
	}
	if c.Cwd != nil {
		all = append(all, *c.Cwd)
	}
	return strings.ContainsRune(strings.Join(all, ""), 0)
}

// A Change is what became of one path: a file, a symbolic link or an empty directory that a command left otherwise than it found it.
type Change struct {
	Path    string      // relative to the top of the files, with /
	Deleted bool        // the file, the link or the whole directory
	Dir     bool        // it is a directory now, an empty one
	Target  string      // of a symbolic link where it leads; "" of a file
	Content []byte      // of a file
	Perm    fs.FileMode // of a file: 0o644 or 0o755
}

// asEnded is the error of a recorded command that its caller did not wait for.
func (r *Result) asEnded(c *Command) error {
	if r.Failure == FailureCancelled {
		return fmt.Errorf("process: %s: it was cancelled when it was recorded: %w", c, context.Canceled)
	}
	return nil
}

// cleaned is a copy of c without its secrets, as clean takes them out; nil leaves them.
func (c *Command) cleaned(clean func([]byte) []byte) *Command {
	out := c.Clone()
	if clean == nil {
		return out
	}
	text := func(s string) string { return string(clean([]byte(s))) }
	out.Program = text(out.Program)
	for i, a := range out.Args {
		out.Args[i] = text(a)
	}
	if out.Cwd != nil {
		*out.Cwd = text(*out.Cwd)
	}
	if len(out.Stdin) > 0 {
		out.Stdin = clean(out.Stdin)
	}
	return out
}

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
