package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
